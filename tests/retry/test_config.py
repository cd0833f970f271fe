"""The settings of a retrying client, and their errors."""

import dataclasses
import functools
import math
import pickle

import aiohttp
import pytest
from chains import URL, bad_argument, chain, raises_exactly, response_of

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryBudget,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    RetryStrategyWithContent,
    SessionBuilder,
    capture_logs,
    smithy,
    unwrap,
)
from aioretry_smithy.smithy import StandardRetryStrategy

NEVER = RetryStrategy.never()


class Looking(RetryStrategyWithContent):
    """Needs the body."""

    def __init__(self, max_content_length=100):
        self.max_content_length = max_content_length

    def should_retry(self, ctx, cause, content):
        return None


VARIABLE = "AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS"


def test_defaults(monkeypatch):
    """They are those of the documentation."""
    monkeypatch.delenv(VARIABLE, raising=False)
    config = RetryConfig(NEVER)

    assert {
        "strategy": NEVER,
        "max_total_attempts": 10,
        "attempt_timeout": None,
        "limiter": None,
        "listeners": (),
        "use_retry_after": True,
        "max_retry_after": 60.0,
        "stop_after_delay": None,
        "buffer_response": False,
        "retry_count_header": "armeria-retry-count",
        "classifiers": smithy.DEFAULT_CLASSIFIERS,
        "raise_retry_error": False,
        "token_scope": None,
    } == {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if field.init
    }


def test_attempts_and_their_timeout_may_be_given_by_position():
    """As on Armeria's page; the rest has to be named."""
    named = RetryConfig(NEVER, max_total_attempts=5, attempt_timeout=3.0)

    assert named == RetryConfig(NEVER, 5, 3.0)
    with pytest.raises(TypeError, match="positional"):
        RetryConfig(NEVER, 5, 3.0, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", 3), ("1", 1), ("", 10), ("007", 7), ("999999999", 999999999)],
)
def test_environment_variable_sets_the_default(monkeypatch, text, expected):
    """It is read when the configuration is made; empty is unset."""
    monkeypatch.setenv(VARIABLE, text)

    assert expected == RetryConfig(NEVER).max_total_attempts


@pytest.mark.parametrize(
    "text", ["0", "-1", "ten", "1.5", " 3", "³", "1" * 10, "9" * 400]
)
def test_environment_variable_must_be_a_positive_integer(monkeypatch, text):
    """A typo is told, not ignored."""
    monkeypatch.setenv(VARIABLE, text)

    with bad_argument(VARIABLE, text, "a positive integer"):
        RetryConfig(NEVER)


def test_argument_wins_over_the_environment(monkeypatch):
    """Then the variable is not even read."""
    monkeypatch.setenv(VARIABLE, "nonsense")

    assert 3 == RetryConfig(NEVER, max_total_attempts=3).max_total_attempts


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max_total_attempts", 0, "an int >= 1"),
        ("max_total_attempts", 2.0, "an int >= 1"),
        ("max_total_attempts", True, "an int >= 1"),
        ("max_total_attempts", None, "an int >= 1"),
        ("attempt_timeout", 0, "finite and > 0, or None"),
        ("attempt_timeout", math.nan, "finite and > 0, or None"),
        ("attempt_timeout", math.inf, "finite and > 0, or None"),
        ("attempt_timeout", "1", "finite and > 0, or None"),
        ("use_retry_after", "no", "True or False"),
        ("max_retry_after", -1, "finite and >= 0, or None"),
        ("max_retry_after", math.inf, "finite and >= 0, or None"),
        ("stop_after_delay", 0, "finite and > 0, or None"),
        ("buffer_response", 1, "True or False"),
        ("buffer_response", None, "True or False"),
        ("retry_count_header", "", "a header name, or None"),
        ("retry_count_header", "a b", "a header name, or None"),
        ("retry_count_header", "x\r\ny", "a header name, or None"),
        ("retry_count_header", "x\n", "a header name, or None"),
        ("retry_count_header", 7, "a header name, or None"),
    ],
)
def test_argument_out_of_range_is_told_at_once(name, value, expected):
    """In the one form that all of this library's errors have."""
    with bad_argument(name, value, expected):
        RetryConfig(NEVER, **{name: value})


def test_settings_can_be_pickled_without_a_limiter():
    """A limiter has state that is shared, and belongs to its process."""
    config = RetryConfig.standard(
        strategy=NEVER | RetryStrategy.failsafe(), limiter=None
    )

    assert config == pickle.loads(pickle.dumps(config))
    with pytest.raises(TypeError, match="PerHostRetryBudget cannot be pickled"):
        pickle.dumps(RetryConfig.standard())


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (RetryStrategy, "; call it: RetryStrategy.failsafe()"),
        (RetryStrategy.never, "; call it: RetryStrategy.never()"),
        (StandardRetryStrategy, "; call it: StandardRetryStrategy()"),
        (len, "; write RetryStrategy.on_status(function) for a function"),
        (int, ""),
        (7, ""),
    ],
)
def test_strategy_must_be_one(given, hint):
    """A class in the place of its instance is a frequent slip."""
    kinds = "a RetryStrategy, a RetryStrategyWithContent or a Smithy strategy"
    with bad_argument("strategy", given, f"{kinds}{hint}"):
        RetryConfig(given)


@pytest.mark.parametrize("length", [0, -1, True, 1.5, "1", None])
def test_strategy_looks_at_one_byte_at_least(length):
    """A strategy that needs no content is of the other kind."""
    with bad_argument("max_content_length", length, "an int >= 1"):
        RetryConfig(Looking(length))


def test_standard_settings_ignore_the_environment(monkeypatch):
    """They are chosen together."""
    monkeypatch.setenv(VARIABLE, "7")

    assert 6 == RetryConfig.standard().max_total_attempts


def test_standard_attempt_timeout_is_chosen_by_nobody_unless_given():
    """So a session with less time is no contradiction; equality does not ask."""
    usual = RetryConfig.standard()
    chosen = RetryConfig.standard(attempt_timeout=10.0, limiter=usual.limiter)

    assert usual.has_usual_attempt_timeout
    assert not chosen.has_usual_attempt_timeout
    assert not RetryConfig(RetryStrategy.never()).has_usual_attempt_timeout
    assert repr(usual) == repr(chosen)


def test_standard_settings_can_be_changed():
    """Each by its keyword, to None too; the others stay."""
    strategy = RetryStrategy.never()
    config = RetryConfig.standard(strategy=strategy, limiter=None, max_retry_after=5.0)
    expected = RetryConfig(
        strategy, max_total_attempts=6, attempt_timeout=10.0, max_retry_after=5.0
    )

    assert expected == config


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("limiter", 0.1, "a RetryLimiter, or None"),
        ("limiter", RetryBudget, "a RetryLimiter, or None; call it: RetryBudget()"),
        ("classifiers", None, "functions of a failure and a verdict"),
        ("classifiers", 1, "functions of a failure and a verdict"),
        ("classifiers", ["by_status"], "functions of a failure and a verdict"),
    ],
)
def test_part_that_is_none_is_told_at_once(name, value, expected):
    """A class instead of an object of it is the likely slip."""
    with bad_argument(name, value, expected):
        RetryConfig(smithy.SimpleRetryStrategy(), **{name: value})


ALWAYS = RetryStrategy.on_server_error_status(Backoff.without_delay())


def attempts(number):
    return RetryConfig(ALWAYS, max_total_attempts=number)


def mapped_session(answers, mapping):
    """Build a session that gets *answers* and asks *mapping* how to retry."""
    return chain(answers, RetryingClient.new_mapped_decorator(mapping)).build()


async def attempts_of(client, url=URL, method="GET"):
    async with client.request(method, url) as response:
        return RequestLog.of(response).total_attempts


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("per_host", "localhost:80"),
        ("per_method", "GET"),
        ("per_host_and_method", "localhost:80#GET"),
    ],
)
async def test_ready_made_keys(name, key):
    """They are those of the circuit breakers; each is made once."""
    asked = []

    def factory(name):
        asked.append(name)
        return attempts(2)

    mapping = getattr(RetryConfigMapping, name)(factory)
    async with mapped_session([503] * 4, mapping) as client:
        made = [await attempts_of(client), await attempts_of(client)]

    assert ([2, 2], [key]) == (made, asked)
    assert repr(mapping).startswith(f"RetryConfigMapping.{name}(")


async def test_key_of_ones_own_is_asked_for_once_per_call():
    """With the context and the request, however many attempts follow."""
    asked = []

    def key(ctx, request):
        asked.append((ctx.parent, request.url.path))
        return request.url.path

    mapping = RetryConfigMapping.of(key, lambda path: attempts(3))
    async with mapped_session([503] * 3, mapping) as client:
        await attempts_of(client)

    assert [(None, "/orders")] == asked


async def test_settings_of_many_keys_are_forgotten():
    """A crawler meets any number of hosts."""
    made = []

    def factory(host):
        made.append(host)
        return attempts(1)

    mapping = RetryConfigMapping.per_host(factory)
    async with mapped_session([200] * 1026, mapping) as client:
        for number in range(1025):
            await attempts_of(client, f"http://host{number}/")
        await attempts_of(client, "http://host0/")

    assert 1026 == len(made)


async def test_request_without_a_host_is_for_aiohttp_to_refuse():
    """Once, and without a key that was never meant."""
    mapping = RetryConfigMapping.per_host(lambda host: attempts(3))
    builder = SessionBuilder().decorator(RetryingClient.new_mapped_decorator(mapping))
    async with builder.build() as client:
        with pytest.raises(aiohttp.InvalidURL):
            await client.get("/orders")


@pytest.mark.parametrize("key", [None, 7])
async def test_key_of_ones_own_must_be_text(key):
    """It tells calls apart, and stands in a map."""
    mapping = RetryConfigMapping.of(lambda ctx, request: key, lambda key: attempts(1))
    with bad_argument("key_fn", key, "returns a str"):
        await response_of(mapped_session([200], mapping))


async def test_mapping_that_raises_ends_the_call_with_an_error():
    """As a strategy does that raises."""

    def factory(host):
        raise KeyError(host)

    with capture_logs() as logs, pytest.raises(KeyError):
        await response_of(mapped_session([], RetryConfigMapping.per_host(factory)))

    assert RetryStopReason.ERROR == logs[0].stop_reason


async def test_factory_must_return_settings():
    """A strategy alone is the likely slip."""
    mapping = RetryConfigMapping.per_host(lambda host: ALWAYS)
    with bad_argument("factory('localhost:80')", ALWAYS, "a RetryConfig"):
        await response_of(mapped_session([200], mapping))


@pytest.mark.parametrize(
    ("arguments", "name"), [((None, attempts), "key_fn"), ((attempts, None), "factory")]
)
def test_arguments_must_be_functions(arguments, name):
    """Told when the mapping is made."""
    expected = {
        "key_fn": "a function of context and request",
        "factory": "a callable that takes the key",
    }
    with raises_exactly(f"{name}: None (expected: {expected[name]})"):
        RetryConfigMapping.of(*arguments)


def test_decorator_needs_a_mapping():
    """And no configuration, for which there is new_decorator()."""
    config = attempts(1)
    with bad_argument("mapping", config, "a RetryConfigMapping"):
        RetryingClient.new_mapped_decorator(config)


def test_description_names_the_factory():
    """By its name, or as it describes itself."""
    named = RetryConfigMapping.per_host(attempts)
    nameless = functools.partial(attempts, 1)

    assert "RetryConfigMapping.per_host(attempts)" == repr(named)
    assert f"RetryConfigMapping.of({nameless!r})" == repr(
        RetryConfigMapping.of(attempts, nameless)
    )


async def test_session_with_a_mapping_counts_as_one_that_retries():
    """So aiohttp sends nothing again on its own."""
    mapping = RetryConfigMapping.per_host(lambda host: attempts(2))
    async with mapped_session([], mapping) as client:
        retrying = unwrap(client, RetryingClient)

        assert not client._retry_connection
        assert f"RetryingClient(mapping={mapping!r})" == retrying.describe()


def test_settings_beside_a_config_are_refused():
    """One of the two would be ignored."""
    config = RetryConfig(RetryStrategy.never())

    with raises_exactly(
        "settings: {'max_total_attempts': 3} (expected: none beside a RetryConfig)"
    ):
        RetryingClient.new_decorator(config, max_total_attempts=3)


@pytest.mark.parametrize("further", [(5,), (5, 3.0), (5, None)])
def test_settings_of_a_decorator_may_be_given_by_position(further):
    """As on Armeria's page, ``new_decorator(strategy, 5, 3.0)``; others are named."""
    names = ("max_total_attempts", "attempt_timeout")
    named = dict(zip(names, further, strict=False))
    strategy = RetryStrategy.never()
    by_position, by_name = (
        SessionBuilder().decorator(decorator).describe()
        for decorator in (
            RetryingClient.new_decorator(strategy, *further, use_retry_after=False),
            RetryingClient.new_decorator(strategy, use_retry_after=False, **named),
        )
    )

    assert by_name == by_position
    with pytest.raises(ValueError, match="settings: .* none beside a RetryConfig"):
        RetryingClient.new_decorator(RetryConfig(strategy), *further)
