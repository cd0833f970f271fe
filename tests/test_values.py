"""Values that are frozen, never copied, or the newest by key."""

import copy
import functools
import pickle
from dataclasses import FrozenInstanceError

import pytest
from chains import NOW, raises_exactly, response_of, retrying, session

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRule,
    CircuitBreakerRuleWithContent,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    Endpoint,
    EndpointGroup,
    OutlierDetection,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    RetryBudget,
    RetryConfig,
    RetryConfigMapping,
    RetryDecision,
    RetryLimiter,
    RetryRule,
    RetryRuleWithContent,
    RetryStrategy,
)
from aioretry_smithy._values import BoundedMap, Shared
from aioretry_smithy.smithy import (
    AdaptiveRetryStrategy,
    ClientRateLimiter,
    ExponentialRetryBackoffStrategy,
    RetryAction,
    RetryProfile,
    RetryStrategyOptions,
    RetryStrategyResolver,
    SimpleRetryStrategy,
    StandardRetryQuota,
    StandardRetryStrategy,
    sync,
)

each_kind = pytest.mark.parametrize(
    ("kind", "arguments", "field"),
    [
        (RetryRule, {"statuses": [503]}, "statuses"),
        (RetryRuleWithContent, {"on_content": bool}, "on_content"),
        (CircuitBreakerRule, {"statuses": [503]}, "statuses"),
        (CircuitBreakerRuleWithContent, {"on_content": bool}, "on_content"),
        (RetryConfig, {"strategy": RetryStrategy.never()}, "max_total_attempts"),
        (RetryDecision, {"backoff": NOW}, "backoff"),
        (Endpoint, {"url": "http://a.example"}, "weight"),
        (OutlierDetection, {}, "max_ejected"),
        (ExponentialRetryBackoffStrategy, {}, "max_backoff"),
        (RetryAction, {"kind": None}, "kind"),
        (RetryProfile, {}, "max_attempts"),
        (RetryStrategyOptions, {}, "max_attempts"),
    ],
)


@each_kind
def test_subclass_has_attributes_of_its_own(kind, arguments, field):
    """Its fields stay as they are all the same."""

    class Own(kind):
        def __init__(self, owner):
            super().__init__(**arguments)
            self.owner = owner

    own = Own("shop")
    with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{field}'"):
        setattr(own, field, 1)
    with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{field}'"):
        delattr(own, field)

    assert "shop" == own.owner
    del own.owner
    assert not hasattr(own, "owner")


@each_kind
def test_misspelt_field_is_named(kind, arguments, field):
    """As one that is spelt well is: neither can be assigned to."""
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'feild'"):
        kind(**arguments).feild = 1


async def test_rule_of_a_subclass_decides():
    """It is a rule like any other."""

    class Noted(RetryRule):
        def __init__(self, name, **conditions):
            super().__init__(**conditions)
            self.name = name

    rule = Noted("maintenance", statuses=[503], backoff=NOW)
    response = await response_of(session([503, 200], retrying(rule)))

    assert 2 == RequestLog.of(response).total_attempts
    assert "maintenance" == rule.name


class Counter(Shared):
    """Something with a state."""

    def __init__(self):
        self.count = 0


class Halved(ConcurrencyLimit):
    """A limit of a user's own."""

    limit = 16


def two_groups():
    return EndpointGroup.of("http://a.test").or_else(EndpointGroup.of("http://b.test"))


KINDS = [
    Counter,
    CircuitBreaker,
    lambda: ConcurrencyLimit.fixed(1),
    lambda: ConcurrencyLimit.fixed(lambda: 1),
    ConcurrencyLimit.aimd,
    ConcurrencyLimit.gradient,
    Halved,
    lambda: RateLimit(1),
    RateLimit.from_headers,
    lambda: EndpointGroup.of("http://a.test"),
    lambda: EndpointGroup.dns("http://a.test"),
    two_groups,
    RetryBudget,
    RetryBudget.per_host,
    lambda: RetryLimiter.concurrency(2),
    lambda: RetryLimiter.token_based(2, 0),
    ClientRateLimiter,
    StandardRetryQuota,
    StandardRetryStrategy,
    sync.StandardRetryStrategy,
    AdaptiveRetryStrategy,
    sync.AdaptiveRetryStrategy,
    RetryStrategyResolver,
    sync.SimpleRetryStrategy().acquire_initial_retry_token,
    sync.StandardRetryStrategy().acquire_initial_retry_token,
]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "make", [*KINDS, SimpleRetryStrategy, sync.SimpleRetryStrategy]
)
def test_copied_settings_hold_the_same_object(make, copied):
    """Settings are copied by libraries that know nothing of breakers and limits."""
    shared = make()
    settings = copied({"orders": [shared]})

    assert shared is copied(shared)
    assert shared is settings["orders"][0]


@pytest.mark.parametrize("make", KINDS)
def test_what_is_shared_here_does_not_go_elsewhere(make):
    """Another process would have half of it: a count, and nobody to tell."""
    shared = make()
    expected = f"{type(shared).__name__} cannot be pickled: it holds shared state"
    with raises_exactly(expected, TypeError):
        pickle.dumps(shared)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_permit_of_a_circuit_has_one_use(copied):
    """The trial that has succeeded is not counted once more for its copy."""
    breaker = CircuitBreaker(success_threshold=2)
    breaker.enter_state(CircuitState.HALF_OPEN)
    permit = breaker.try_request()
    breaker.on_success(permit)
    breaker.on_success(copied(permit))

    assert CircuitState.HALF_OPEN is breaker.state


def test_map_makes_a_value_once_per_key():
    """The factory is called with the key, once."""
    made = []
    values = BoundedMap(lambda key: made.append(key) or [key])

    first, other, again = values.get("a"), values.get("b"), values.get("a")

    assert ["a", "b"] == made
    assert first is again
    assert ["b"] == other


def test_map_drops_the_least_recently_used():
    """A value that was asked for again outlives an older one."""
    made = []
    values = BoundedMap(lambda key: made.append(key) or key, max_size=2)

    for key in ("a", "b", "a", "c", "a", "b"):
        values.get(key)

    assert ["a", "b", "c", "b"] == made
    assert 2 == len(values)


def test_copy_of_a_map_is_independent():
    """It shows what is kept, in the order in which it was last asked for."""
    values = BoundedMap(str.upper)
    for key in ("a", "b", "a"):
        values.get(key)
    copy = values.copy()
    values.get("c")

    assert [("b", "B"), ("a", "A")] == list(copy.items())


def test_map_keeps_1024_values_by_default():
    """However many hosts there are, the map stays small."""
    values = BoundedMap(str)

    for number in range(3000):
        values.get(str(number))

    assert 1024 == len(values)


def test_map_keeps_nothing_when_the_factory_raises():
    """A factory that fails is asked again, and its error stands alone."""
    values = BoundedMap(int)

    with pytest.raises(ValueError) as caught:
        values.get("seven")

    assert None is caught.value.__context__
    assert 0 == len(values)
    assert 7 == values.get("7")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None,), "factory: None (expected: a callable that takes the key)"),
        ((str, 0), "max_size: 0 (expected: an int > 0)"),
        ((str, True), "max_size: True (expected: an int > 0)"),
        ((str, 1.5), "max_size: 1.5 (expected: an int > 0)"),
        ((str, "9"), "max_size: '9' (expected: an int > 0)"),
    ],
)
def test_map_rejects_bad_arguments(arguments, message):
    """A bad argument is named where the map is made."""
    with raises_exactly(message):
        BoundedMap(*arguments)


async def later(*arguments):
    raise AssertionError("not asked")


@pytest.mark.parametrize(
    "make",
    [
        CircuitBreakerClient.new_per_host_decorator,
        CircuitBreakerClient.new_per_path_decorator,
        ConcurrencyLimitingClient.new_per_host_decorator,
        RateLimitingClient.new_per_host_decorator,
        RetryConfigMapping.per_host,
        functools.partial(RetryConfigMapping.of, lambda ctx, request: ""),
    ],
)
def test_factory_is_not_asynchronous(make):
    """Nobody awaits what it makes; that would be told at the first call only."""
    expected = "a callable that takes the key, without async"
    with pytest.raises(ValueError, match=rf"^factory: .* \(expected: {expected}\)$"):
        make(later)


def test_function_of_a_key_is_not_asynchronous():
    """As a factory."""
    expected = "a function of context and request, without async"
    with pytest.raises(ValueError, match=rf"^key_fn: .* \(expected: {expected}\)$"):
        RetryConfigMapping.of(later, lambda key: RetryConfig.no_retry())
