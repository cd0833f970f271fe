"""The same calls to smithy-python and to this library, side by side.

What both have is to do the same. What differs on purpose is in one table here and in
one on the page about Smithy, row by row.
"""

from __future__ import annotations

import copy
import csv
import dataclasses
import inspect
import math
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import smithy

# It needs Python 3.12.
exceptions = pytest.importorskip("smithy_core.exceptions")
MODULES = [
    pytest.importorskip(f"smithy_core.{name}")
    for name in (
        "retries",
        "interfaces.retries",
        "aio.retries",
        "aio.interfaces.retries",
    )
]
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "smithy-differences.csv"


def their_names() -> dict[str, Any]:
    """Return what smithy-python makes public for retries."""
    names = {
        name: value
        for module in MODULES
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
    }
    of_errors = ("CallError", "ClientTimeoutError", "Fault", "ModeledError")
    names |= {name: getattr(exceptions, name) for name in (*of_errors, "RetryError")}
    return names | {"RetryStrategyType": MODULES[0].RetryStrategyType}


NAMES = their_names()
THEIRS = SimpleNamespace(**NAMES)
SIDES = (THEIRS, smithy)
SCOPE = "orders"


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def methods_of(kind: type) -> dict[str, Callable[..., Any]]:
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
known = st.fixed_dictionaries(
    {
        "is_retry_safe": st.sampled_from([True, True, True, True, False]),
        "fault": st.sampled_from(["client", "server", None]),
        "is_throttling_error": st.booleans(),
        "is_timeout_error": st.booleans(),
    },
    optional={"retry_after": st.none() | st.floats(-1, 60)},
)
failures = known | unknown | st.none()
"""Descriptions of failures; None is an exception that says nothing."""


async def tell(
    side: Any, strategy: Any, quota: Any, calls: list[list[dict[str, Any] | None]]
) -> list[object]:
    """Make some calls and tell all that a caller sees of them."""
    told: list[object] = []
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


@given(
    calls=st.lists(st.lists(failures, max_size=5), max_size=6),
    capacity=st.sampled_from([0, 14, 30, 500]),
    max_attempts=st.integers(1, 5),
    seed=st.integers(0, 9),
)
async def test_standard_strategies_do_the_same(calls, capacity, max_attempts, seed):
    """The same tokens, delays, refusals and quota, with the same random."""
    told = []
    for side in SIDES:
        random.seed(seed)
        quota = side.StandardRetryQuota(initial_capacity=capacity)
        strategy = side.StandardRetryStrategy(
            max_attempts=max_attempts, retry_quota=quota
        )
        told.append(await tell(side, strategy, quota, calls))

    assert told[0] == told[1]


@given(
    calls=st.lists(
        st.lists(
            failures.map(lambda said: said and {**said, "retry_after": None}),
            max_size=7,
        ),
        max_size=4,
    ),
    max_attempts=st.none() | st.integers(1, 5),
    seed=st.integers(0, 9),
)
async def test_simple_strategies_do_the_same(calls, max_attempts, seed):
    """The same tokens, delays and refusals; five attempts where nobody says."""
    told = []
    for side in SIDES:
        random.seed(seed)
        settings = {} if max_attempts is None else {"max_attempts": max_attempts}
        strategy = side.SimpleRetryStrategy(**settings)
        quota = side.StandardRetryQuota()
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


def asked_with(side: Any, kind: str, **settings: Any) -> Any:
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


async def refreshed(side: Any, error: Exception, strategy: Any = None) -> Any:
    """Exchange an initial token."""
    strategy = strategy or side.StandardRetryStrategy()
    token = await strategy.acquire_initial_retry_token()
    return await strategy.refresh_retry_token_for_retry(
        token_to_renew=token, error=error
    )


def steady(side: Any) -> Any:
    """Make a strategy whose first delay is a second."""
    return side.StandardRetryStrategy(
        backoff_strategy=side.ExponentialRetryBackoffStrategy(
            backoff_scale_value=1, jitter_type=side.ExponentialBackoffJitterType.NONE
        )
    )


async def adaptive_mode(side):
    options = side.RetryStrategyOptions(retry_mode="adaptive")
    resolver = side.RetryStrategyResolver()
    return type(await resolver.resolve_retry_strategy(retry_strategy=options)).__name__


async def unknown_mode(side):
    return side.RetryStrategyOptions(retry_mode="off").retry_mode


async def nobody_can_tell(side):
    return (await refreshed(side, side.CallError(fault="server"))).retry_count


async def three_attributes(side):
    class OldError(Exception):
        is_retry_safe = True
        retry_after = None
        is_throttling_error = False

    return (await refreshed(side, OldError())).retry_count


async def truth_that_is_no_bool(side):
    return (await refreshed(side, side.CallError(is_retry_safe="yes"))).retry_count


async def used_token(side):
    quota = side.StandardRetryQuota(initial_capacity=100)
    strategy = side.StandardRetryStrategy(retry_quota=quota)
    token = await strategy.acquire_initial_retry_token()
    for _ in range(2):
        await strategy.refresh_retry_token_for_retry(
            token_to_renew=token, error=side.ClientTimeoutError()
        )
    return 100 - quota.available_capacity


async def foreign_token(side):
    token = await side.StandardRetryStrategy().acquire_initial_retry_token()
    return await side.StandardRetryStrategy().record_success(token=token)


async def foreign_token_of_another_class(side):
    token = await side.StandardRetryStrategy().acquire_initial_retry_token()
    return await side.SimpleRetryStrategy().record_success(token=token)


async def token_made_by_hand(side):
    token = side.StandardRetryToken(retry_count=0, retry_delay=0.0)
    return await side.StandardRetryStrategy().record_success(token=token)


async def equal_tokens(side):
    strategy = side.StandardRetryStrategy()
    first = await strategy.acquire_initial_retry_token()
    return first == await strategy.acquire_initial_retry_token()


async def retries_granted(side: Any, strategy: Any, scope: str) -> int:
    """Retry in a scope until there is no more token for it."""
    token = await strategy.acquire_initial_retry_token(token_scope=scope)
    error = side.CallError(is_retry_safe=True)
    try:
        while True:
            token = await strategy.refresh_retry_token_for_retry(
                token_to_renew=token, error=error
            )
    except side.RetryError:
        return token.retry_count


async def scopes(side):
    strategy = side.StandardRetryStrategy(max_attempts=100)
    return [await retries_granted(side, strategy, scope) for scope in ("a", "b")]


async def decorrelated(side):
    backoff = side.ExponentialRetryBackoffStrategy(
        backoff_scale_value=2,
        jitter_type=side.ExponentialBackoffJitterType.DECORRELATED,
        random=lambda: 0.5,
    )
    return [backoff.compute_next_backoff_delay(1) for _ in range(3)]


async def late_retry(side):
    backoff = side.ExponentialRetryBackoffStrategy(
        jitter_type=side.ExponentialBackoffJitterType.NONE
    )
    return backoff.compute_next_backoff_delay(1025)


async def hint_in_the_simple_mode(side):
    error = side.CallError(is_retry_safe=True, retry_after=60.0)
    token = await refreshed(side, error, side.SimpleRetryStrategy())
    return token.retry_delay >= 60.0


async def endless_hint(side):
    error = side.CallError(is_retry_safe=True, retry_after=math.inf)
    return (await refreshed(side, error, steady(side))).retry_delay


async def arguments_out_of_range(side):
    return side.StandardRetryStrategy(max_attempts=0).max_attempts


async def capacity_out_of_range(side):
    return side.StandardRetryQuota(initial_capacity=-1).available_capacity


async def false_quota(side):
    class Empty(side.StandardRetryQuota):
        def __bool__(self):
            return self.available_capacity > 0

    strategy = side.StandardRetryStrategy(retry_quota=Empty(initial_capacity=0))
    error = side.CallError(is_retry_safe=True)
    return (await refreshed(side, error, strategy)).retry_count


async def copied_quota(side):
    quota = side.StandardRetryQuota()
    return copy.copy(quota) is quota


async def equal_errors(side):
    return side.CallError("busy") == side.CallError("busy")


async def hashed_error(side):
    return isinstance(hash(side.CallError("busy")), int)


async def base_of_errors(side):
    return [kind.__mro__[1].__name__ for kind in (side.CallError, side.RetryError)]


async def what_errors_know(side):
    known = ("response_metadata", "status", "code")
    return [name for name in known if hasattr(side.CallError(), name)]


async def strategy_without_attributes(side):
    class Bare:
        async def acquire_initial_retry_token(self, *, token_scope=None): ...

        async def refresh_retry_token_for_retry(self, *, token_to_renew, error): ...

        async def record_success(self, *, token): ...

    resolver = side.RetryStrategyResolver()
    return type(await resolver.resolve_retry_strategy(retry_strategy=Bare())).__name__


class Difference(NamedTuple):
    """One thing that is different on purpose."""

    row: str
    """How its row on the page begins."""

    probe: Callable[[Any], Awaitable[object]]
    """A function that shows it, given one side."""

    theirs: object
    """The result with smithy-python, a value or the name of an exception."""

    ours: object
    """The result here."""


DIFFERENCES = (
    Difference(
        "the adaptive mode", adaptive_mode, "ValueError", "AdaptiveRetryStrategy"
    ),
    Difference("a mode that does not exist", unknown_mode, "off", "ValueError"),
    Difference("``is_retry_safe`` is None", nobody_can_tell, "RetryError", 1),
    Difference(
        "an error without ``is_timeout_error``", three_attributes, "RetryError", 1
    ),
    Difference(
        "an ``is_retry_safe`` that is no bool", truth_that_is_no_bool, 1, "RetryError"
    ),
    Difference("a token used twice", used_token, 28, "ValueError"),
    Difference("a token of another strategy", foreign_token, None, "ValueError"),
    Difference(
        "a token of another strategy",
        foreign_token_of_another_class,
        None,
        "ValueError",
    ),
    Difference("a token made by hand", token_made_by_hand, None, "ValueError"),
    Difference("tokens that say the same", equal_tokens, True, False),
    Difference("``token_scope``", scopes, [35, 0], [35, 35]),
    Difference("``DECORRELATED`` jitter", decorrelated, [5, 9.5, 16.25], [5, 5, 5]),
    Difference("retry 1025 and later", late_retry, "OverflowError", 20.0),
    Difference(
        "``SimpleRetryStrategy`` and ``retry_after``",
        hint_in_the_simple_mode,
        False,
        True,
    ),
    Difference("a ``retry_after`` of infinity", endless_hint, 6.0, 1.0),
    Difference("arguments out of range", arguments_out_of_range, 0, "ValueError"),
    Difference("arguments out of range", capacity_out_of_range, -1, "ValueError"),
    Difference(
        "a quota or a backoff that Python takes for false", false_quota, 1, "RetryError"
    ),
    Difference("a copy of a quota or a strategy", copied_quota, False, True),
    Difference("``CallError`` objects that say the same", equal_errors, True, False),
    Difference("``CallError`` in a set", hashed_error, "TypeError", True),
    Difference(
        "the base of the errors",
        base_of_errors,
        ["SmithyError", "SmithyError"],
        ["Exception", "Exception"],
    ),
    Difference(
        "what a ``CallError`` knows of the response",
        what_errors_know,
        ["response_metadata"],
        ["status", "code"],
    ),
    Difference(
        "a strategy without ``backoff_strategy``",
        strategy_without_attributes,
        "TypeError",
        "Bare",
    ),
)

OF_CLIENTS = {
    "methods of a strategy",
    "a 500, 502, 503 or 504 that no model describes, a failed connection",
    "a refused initial token",
    "what ``record_success`` raises",
    "``Retry-After``",
}
"""Rows about the clients around the strategies, which smithy-core does not show."""


@pytest.mark.parametrize(
    "difference", DIFFERENCES, ids=lambda difference: difference.probe.__name__
)
async def test_known_difference(difference):
    """It is still one, on both sides as it is described."""
    happened = []
    for side in SIDES:
        try:
            happened.append(await difference.probe(side))
        except Exception as error:
            happened.append(type(error).__name__)

    assert [difference.theirs, difference.ours] == happened


def test_page_has_all_known_differences():
    """A row for each, and none that is no longer one."""
    with PAGE.open(encoding="utf-8", newline="") as file:
        rows = [row[""] for row in csv.DictReader(file)]

    assert sorted({each.row for each in DIFFERENCES} | OF_CLIENTS) == sorted(rows)
