"""smithy-python and this library: each in the other, and side by side."""

import asyncio
import copy
import dataclasses
import inspect
import random

import aiohttp
import pytest
from both_sides import NAMES, SIDES, THEIRS, known
from chains import retrying_session, status_and_log
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import Backoff, RetryStopReason, smithy

# It needs Python 3.12.
exceptions = pytest.importorskip("smithy_core.exceptions")
theirs = pytest.importorskip("smithy_core.aio.retries")
interfaces = pytest.importorskip("smithy_core.interfaces.retries")
aio_interfaces = pytest.importorskip("smithy_core.aio.interfaces.retries")
smithy_retries = pytest.importorskip("smithy_core.retries")

OURS = [
    smithy.SimpleRetryStrategy,
    smithy.StandardRetryStrategy,
    smithy.AdaptiveRetryStrategy,
]


async def answer_and_log(answers, strategy, **settings):
    """Make one call that gets *answers* and asks *strategy*."""
    return await status_and_log(retrying_session(answers, strategy, **settings))


@pytest.mark.parametrize("name", ["SimpleRetryStrategy", "StandardRetryStrategy"])
async def test_their_strategies_retry_what_failed(name):
    """Statuses, timeouts and connections, which their own clients give up on."""
    strategy = getattr(theirs, name)(max_attempts=5)
    answers = [503, 429, aiohttp.ServerDisconnectedError(), TimeoutError(), 200]
    status, log = await answer_and_log(answers, strategy)

    assert (200, 5) == (status, log.total_attempts)


async def test_their_quota_pays_and_gets_back():
    """The error that they are shown tells throttling from the rest."""
    quota = smithy_retries.StandardRetryQuota(initial_capacity=100)
    strategy = theirs.StandardRetryStrategy(retry_quota=quota)
    await answer_and_log([503, 429, 200], strategy)

    assert 100 - 14 == quota.available_capacity


@pytest.mark.parametrize(
    ("answers", "capacity", "reason"),
    [
        ([503, 503, 503], 100, RetryStopReason.MAX_TOTAL_ATTEMPTS),
        ([503], 13, RetryStopReason.LIMITER),
        ([404], 100, RetryStopReason.NO_RETRY),
        ([501], 100, RetryStopReason.NO_RETRY),
    ],
)
async def test_their_refusal_ends_in_the_last_response(answers, capacity, reason):
    """Their own RetryError is understood, and why it was raised."""
    quota = smithy_retries.StandardRetryQuota(initial_capacity=capacity)
    strategy = theirs.StandardRetryStrategy(retry_quota=quota)
    status, log = await answer_and_log(answers, strategy)

    assert (answers[-1], reason) == (status, log.stop_reason)
    assert isinstance(log.retry_error, exceptions.RetryError)
    assert isinstance(log.retry_error.__cause__, smithy.CallError)


async def test_their_refusal_is_raised_on_request():
    """Their users catch their class."""
    strategy = theirs.SimpleRetryStrategy(max_attempts=1)
    with pytest.raises(exceptions.RetryError):
        await answer_and_log([503], strategy, raise_retry_error=True)


async def test_their_strategy_clamps_the_hint():
    """It reads it from the error; five seconds more than its own delay at most."""
    strategy = theirs.StandardRetryStrategy(
        backoff_strategy=smithy.ExponentialRetryBackoffStrategy(
            backoff_scale_value=1.0,
            jitter_type=smithy.ExponentialBackoffJitterType.NONE,
        )
    )
    answer = (503, {"Retry-After": "30"}, b"")
    _, log = await answer_and_log([answer, 200], strategy, use_retry_after=False)

    assert 6.0 == log.children[0].delay


@pytest.mark.parametrize("kind", OURS)
async def test_ours_are_strategies_to_them(kind):
    """Their resolver takes one as it is, and copies of settings share it."""
    strategy = kind()
    resolver = theirs.RetryStrategyResolver()

    assert isinstance(strategy, aio_interfaces.RetryStrategy)
    assert strategy is await resolver.resolve_retry_strategy(retry_strategy=strategy)
    assert strategy is copy.deepcopy(strategy)


def test_our_error_has_all_that_they_ask_for():
    """It passes the test by which their strategies tell what can be retried."""
    assert isinstance(smithy.CallError(), interfaces.ErrorRetryInfo)


@pytest.mark.parametrize("kind", OURS)
async def test_our_refusal_is_theirs_too(kind):
    """Their loops catch their own class of errors, and read the hint in it."""
    strategy = kind(max_attempts=1)
    token = await strategy.acquire_initial_retry_token(token_scope="orders")
    with pytest.raises(exceptions.RetryError) as caught:
        await strategy.refresh_retry_token_for_retry(
            token_to_renew=token, error=exceptions.ClientTimeoutError()
        )

    assert isinstance(caught.value, smithy.RetryError)
    assert caught.value.retry_after is None


@pytest.mark.parametrize("kind", OURS)
async def test_ours_work_in_a_loop_as_their_pipeline_has_it(kind):
    """Token, delay, attempt, refresh, success, with their errors."""
    strategy = kind()
    failures = [
        exceptions.ClientTimeoutError(),
        exceptions.CallError(fault="server", message="busy", is_retry_safe=True),
    ]
    token = await strategy.acquire_initial_retry_token(token_scope=None)
    for failure in failures:
        token = await strategy.refresh_retry_token_for_retry(
            token_to_renew=token, error=failure
        )
        await asyncio.sleep(token.retry_delay)
    await strategy.record_success(token=token)

    assert 2 == token.retry_count


async def test_our_backoff_works_in_their_strategies():
    """Also its end: that is a refusal to them as well."""
    backoff = Backoff.fixed(1.5).with_max_attempts(2)
    strategy = theirs.SimpleRetryStrategy(backoff_strategy=smithy.from_backoff(backoff))
    _, log = await answer_and_log([503, 503], strategy)

    assert [1.5, None] == [child.delay for child in log.children]
    assert RetryStopReason.BACKOFF_EXHAUSTED == log.stop_reason
    assert isinstance(log.retry_error, exceptions.RetryError)


pytest.importorskip("smithy_core")  # which needs Python 3.12

SCOPE = "orders"


def parameters_of(function):
    return dict(inspect.signature(function).parameters)


def methods_of(kind):
    """Return what can be called on an object, and how it is made."""
    found = {
        name: method
        for name, method in vars(kind).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    return {"__init__": kind.__init__, **found}


CLASSES = [
    name
    for name, value in NAMES.items()
    if inspect.isclass(value) and value.__init__ is not object.__init__
]


@pytest.mark.parametrize("name", NAMES)
def test_their_names_are_ours(name):
    """Imports can be redirected."""
    assert name in smithy.__all__


@pytest.mark.parametrize("name", CLASSES)
def test_their_calls_can_be_made_here(name):
    """Every argument of theirs has its name and its place; ours are optional."""
    for method, theirs in methods_of(NAMES[name]).items():
        wanted = parameters_of(theirs)
        wanted.pop("response_metadata", None)
        here = parameters_of(getattr(getattr(smithy, name), method))
        added = [here[extra] for extra in here.keys() - wanted.keys()]

        assert {each: wanted[each].kind for each in wanted} == {
            each: here[each].kind for each in wanted if each in here
        }
        assert all(extra.default is not extra.empty for extra in added)


def test_constants_of_the_quota_are_theirs():
    """All that the class has in capital letters."""
    constants = {
        name: value
        for name, value in vars(THEIRS.StandardRetryQuota).items()
        if name.isupper()
    }

    assert constants == {
        name: getattr(smithy.StandardRetryQuota, name) for name in constants
    }


def test_kinds_of_jitter_are_theirs():
    """By name, by value and in number."""
    theirs, ours = (
        [(kind.name, kind.value) for kind in side.ExponentialBackoffJitterType]
        for side in SIDES
    )

    assert theirs == ours


@given(
    kind=st.sampled_from(["DEFAULT", "NONE", "FULL", "DECORRELATED"]),
    scale=st.floats(0, 100),
    longest=st.floats(0, 100),
    chance=st.floats(0, 1, exclude_max=True),
)
def test_delays_are_the_same(kind, scale, longest, chance):
    """With the same random, for the retries of one call."""
    theirs, ours = (
        side.ExponentialRetryBackoffStrategy(
            backoff_scale_value=scale,
            max_backoff=longest,
            jitter_type=side.ExponentialBackoffJitterType[kind],
            random=lambda: chance,
        )
        for side in SIDES
    )
    retries = range(20)

    assert [theirs.compute_next_backoff_delay(n) for n in retries] == [
        ours.compute_next_backoff_delay(n) for n in retries
    ]


def test_delays_are_the_same_by_default():
    """The settings are the same, and so is the random that is asked."""
    told = []
    for side in SIDES:
        random.seed(7)
        backoff = side.ExponentialRetryBackoffStrategy()
        told.append([backoff.compute_next_backoff_delay(n) for n in range(30)])

    assert told[0] == told[1]


@given(
    capacity=st.integers(0, 60),
    events=st.lists(
        st.sampled_from(["retry", "throttled", "timeout"]) | st.integers(0, 30)
    ),
)
def test_quotas_are_the_same(capacity, events):
    """Charges, refusals and remainders are the same, in any order of events."""
    told = []
    for side in SIDES:
        quota = side.StandardRetryQuota(initial_capacity=capacity)
        errors = {
            "retry": ConnectionResetError(),
            "throttled": side.CallError(is_throttling_error=True),
            "timeout": side.ClientTimeoutError(),
        }
        for event in events:
            try:
                told.append(
                    quota.acquire(error=errors[event])
                    if isinstance(event, str)
                    else quota.release(release_amount=event)
                )
            except side.RetryError as refusal:
                told.append((refusal.retry_after, str(refusal)[:20]))
            told.append(quota.available_capacity)
    half = len(told) // 2

    assert told[:half] == told[half:]


# Where nobody can tell whether a retry is safe, both refuse what is nobody's fault.
unknown = st.fixed_dictionaries(
    {"is_retry_safe": st.none(), "fault": st.sampled_from(["client", None])}
)
failures = known | unknown | st.none()
"""Descriptions of failures; None is an exception that says nothing."""


async def tell(side, strategy, quota, calls):
    """Make some calls and tell all that a caller sees of them."""
    told = []
    for failed in calls:
        token = await strategy.acquire_initial_retry_token(token_scope=SCOPE)
        told.append((token.retry_count, token.retry_delay))
        for said in failed:
            error = ValueError() if said is None else side.CallError("busy", **said)
            try:
                token = await strategy.refresh_retry_token_for_retry(
                    token_to_renew=token, error=error
                )
            except side.RetryError as refusal:
                told.append((refusal.retry_after, refusal.__cause__ is error))
                break
            paid = getattr(token, "quota_acquired", None)
            told.append((token.retry_count, token.retry_delay, paid))
        else:
            told.append(await strategy.record_success(token=token))
        told.append(quota.available_capacity)
    return told


@pytest.mark.parametrize("kind", ["SimpleRetryStrategy", "StandardRetryStrategy"])
@given(
    calls=st.lists(st.lists(failures, max_size=7), max_size=6),
    capacity=st.sampled_from([0, 14, 30, 500]),
    max_attempts=st.none() | st.integers(1, 5),
    seed=st.integers(0, 9),
)
async def test_strategies_do_the_same(kind, calls, capacity, max_attempts, seed):
    """The same tokens, delays, refusals and quota, with the same random."""
    settings = {} if max_attempts is None else {"max_attempts": max_attempts}
    is_simple = kind == "SimpleRetryStrategy"
    if is_simple:
        # The hint, which theirs does not look at, is a known difference.
        calls = [
            [said and {**said, "retry_after": None} for said in call] for call in calls
        ]
    told = []
    for side in SIDES:
        random.seed(seed)
        quota = side.StandardRetryQuota(initial_capacity=capacity)
        own = settings if is_simple else {**settings, "retry_quota": quota}
        strategy = getattr(side, kind)(**own)
        told.append(await tell(side, strategy, quota, calls))

    assert told[0] == told[1]


@pytest.mark.parametrize("side", SIDES, ids=["theirs", "ours"])
async def test_standard_strategies_refuse_tokens_of_another_kind(side):
    """By the same class of errors, to renew one or to take it back."""
    strategy = side.StandardRetryStrategy()
    token = await side.SimpleRetryStrategy().acquire_initial_retry_token()

    with pytest.raises(TypeError):
        await strategy.record_success(token=token)
    with pytest.raises(TypeError):
        await strategy.refresh_retry_token_for_retry(
            token_to_renew=token, error=side.ClientTimeoutError()
        )


@pytest.mark.parametrize("name", ["CallError", "ModeledError", "ClientTimeoutError"])
@pytest.mark.parametrize(
    "said",
    [
        {},
        {"message": "busy"},
        {"fault": "server", "is_retry_safe": False, "retry_after": 1.5},
        {"is_throttling_error": True, "is_timeout_error": True},
    ],
)
def test_errors_say_the_same(name, said):
    """Given or not, in each attribute that both have, and in print."""
    told = []
    for side in SIDES:
        error = getattr(side, name)(**said)
        known = {field.name for field in dataclasses.fields(THEIRS.CallError)}
        known.discard("response_metadata")
        told.append(({each: getattr(error, each) for each in known}, str(error)))
        told[-1] += (error.args, isinstance(error, side.CallError))

    assert told[0] == told[1]


@pytest.mark.parametrize("said", [((), {}), (("no",), {"retry_after": 1.5})])
def test_refusals_say_the_same(said):
    """Why, and when there may be a token."""
    positional, by_name = said
    theirs, ours = (side.RetryError(*positional, **by_name) for side in SIDES)

    assert (str(theirs), theirs.args, theirs.retry_after) == (
        str(ours),
        ours.args,
        ours.retry_after,
    )


def test_options_are_the_same():
    """Their defaults, and that they stay as they are."""
    told = []
    for side in SIDES:
        options = side.RetryStrategyOptions()
        with pytest.raises(dataclasses.FrozenInstanceError):
            options.max_attempts = 5
        told.append((options.retry_mode, options.max_attempts, repr(options)))
        told.append(options == side.RetryStrategyOptions(retry_mode="standard"))
    half = len(told) // 2

    assert told[:half] == told[half:]


def asked_with(side, kind, **settings):
    """Make what a resolver may be asked with."""
    if kind == "options":
        return side.RetryStrategyOptions(**settings)
    return side.SimpleRetryStrategy() if kind == "strategy" else None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["options", "none", "strategy"]),
            st.sampled_from(["simple", "standard"]),
            st.sampled_from([None, 1, 3, 5]),
        ),
        max_size=8,
    )
)
async def test_resolvers_do_the_same(questions):
    """Which strategy comes of which settings, and which are one and the same."""
    told = []
    for side in SIDES:
        resolver, found = side.RetryStrategyResolver(), []
        for kind, mode, most in questions:
            settings = {"retry_mode": mode, "max_attempts": most}
            given = asked_with(side, kind, **settings)
            found.append(
                await resolver.resolve_retry_strategy(retry_strategy=given, **settings)
            )
        first = [[other is each for other in found].index(True) for each in found]
        kinds = [(type(each).__name__, each.max_attempts) for each in found]
        told.append((first, kinds))

    assert told[0] == told[1]


@pytest.mark.parametrize("given", ["standard", 5, object()])
async def test_resolvers_refuse_the_same(given):
    """In the words that their own tests look for."""
    words = "retry_strategy must be RetryStrategy, RetryStrategyOptions, or None"
    for side in SIDES:
        with pytest.raises(TypeError, match=words):
            await side.RetryStrategyResolver().resolve_retry_strategy(
                retry_strategy=given
            )
