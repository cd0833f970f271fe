"""What the strategies of all modes have in common, awaited and plain."""

import copy
import pickle

import pytest
from chains import bad_argument, raises_exactly
from token_strategies import UNAVAILABLE, acquire, refresh, settled

from aioretry_smithy import Backoff
from aioretry_smithy.smithy import (
    AdaptiveRetryStrategy,
    BackoffExhaustedError,
    CallError,
    RetryError,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    StandardRetryToken,
    from_backoff,
    sync,
)

KINDS = {
    "simple": SimpleRetryStrategy,
    "standard": StandardRetryStrategy,
    "adaptive": AdaptiveRetryStrategy,
    "simple, plain": sync.SimpleRetryStrategy,
    "standard, plain": sync.StandardRetryStrategy,
    "adaptive, plain": sync.AdaptiveRetryStrategy,
}
NOW = from_backoff(Backoff.fixed(0))
BACKOFF = "an object with compute_next_backoff_delay(); see from_backoff()"
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture
def strategy(kind):
    """A strategy with three attempts that nobody waits for."""
    return kind(backoff_strategy=NOW, max_attempts=3)


def left_in(strategy):
    """Return what the quota can pay, where there is one."""
    if hasattr(strategy, "quota_for"):
        return strategy.quota_for().available_capacity
    return None


async def succeed(strategy, token):
    return await settled(strategy.record_success(token=token))


@each_kind
async def test_attempts_have_an_end(strategy):
    """After the last attempt there is no token; it costs nothing, and says why."""
    token = await refresh(strategy, await acquire(strategy))
    token = await refresh(strategy, token)
    left = left_in(strategy)
    with raises_exactly("all attempts are made: 3", RetryError) as caught:
        await refresh(strategy, token)

    assert UNAVAILABLE is caught.value.__cause__
    assert caught.value.retry_after is None
    assert left == left_in(strategy)


@each_kind
@pytest.mark.parametrize("max_attempts", [1, 3])
@pytest.mark.parametrize("error", [ValueError("bad"), CallError(is_retry_safe=False)])
async def test_error_that_allows_no_retry_ends_the_call(kind, max_attempts, error):
    """It comes first, also after the last attempt, and costs nothing."""
    strategy = kind(backoff_strategy=NOW, max_attempts=max_attempts)
    token, left = await acquire(strategy), left_in(strategy)
    with raises_exactly(f"the error allows no retry: {error!r}", RetryError) as caught:
        await refresh(strategy, token, error)

    assert error is caught.value.__cause__
    assert caught.value.retry_after is None
    assert left == left_in(strategy)


@each_kind
async def test_exhausted_backoff_ends_the_call(kind):
    """A Backoff that stops is a refusal like any other, and comes before the quota."""
    backoff = Backoff.fixed(1).with_max_attempts(1)
    strategy = kind(backoff_strategy=from_backoff(backoff))
    token, left = await acquire(strategy), left_in(strategy)
    with pytest.raises(BackoffExhaustedError) as caught:
        await refresh(strategy, token)

    assert UNAVAILABLE is caught.value.__cause__
    assert caught.value.retry_after is None
    assert left == left_in(strategy)


@each_kind
@pytest.mark.parametrize("used_by", ["refresh", "refusal", "success"])
async def test_token_is_good_for_one_use(strategy, used_by):
    """Whatever a token was used for, it can neither be charged nor refunded again."""
    token = await refresh(strategy, await acquire(strategy))
    if used_by == "refresh":
        await refresh(strategy, token)
    elif used_by == "success":
        await succeed(strategy, token)
    else:
        with pytest.raises(RetryError):
            await refresh(strategy, token, ValueError())
    left = left_in(strategy)

    with bad_argument("token_to_renew", token, "not used before"):
        await refresh(strategy, token)
    with bad_argument("token", token, "not used before"):
        await succeed(strategy, token)
    assert left == left_in(strategy)


@each_kind
async def test_token_of_another_strategy_is_refused(kind, strategy):
    """The mistake is named, and the token stays good where it came from."""
    other = kind()
    token = await acquire(other)

    with bad_argument("token_to_renew", token, "issued by this strategy"):
        await refresh(strategy, token)
    with bad_argument("token", token, "issued by this strategy"):
        await succeed(strategy, token)
    await succeed(other, token)


@each_kind
@pytest.mark.parametrize("thing", [None, "token", 0, StandardRetryToken, "simple"])
async def test_something_else_is_no_token(kind, strategy, thing):
    """It is a mistake in the program; a token of another kind is one too."""
    is_simple = kind.__name__ == "SimpleRetryStrategy"
    if thing == "simple" and not is_simple:
        thing = await acquire(SimpleRetryStrategy())
    expected = "a SimpleRetryToken" if is_simple else "a StandardRetryToken"

    with bad_argument("token_to_renew", thing, expected, TypeError):
        await refresh(strategy, thing)
    with bad_argument("token", thing, expected, TypeError):
        await succeed(strategy, thing)


@each_kind
@pytest.mark.parametrize("scope", [443, b"example.com", ("example.com", 443)])
async def test_scope_is_text(strategy, scope):
    """A scope that could not be told from another one is refused."""
    with bad_argument("token_scope", scope, "a str, or None"):
        await acquire(strategy, scope)


@each_kind
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        *(
            ("max_attempts", value, "an int >= 1")
            for value in (0, -1, 3.0, True, "3", float("inf"))
        ),
        *(
            ("backoff_strategy", value, BACKOFF)
            for value in (Backoff.fixed(1), type(NOW), 2.0)
        ),
    ],
)
def test_bad_argument_is_refused(kind, name, value, expected):
    """A strategy that would fail later is not made."""
    with bad_argument(name, value, expected):
        kind(**{name: value})


@each_kind
def test_falsy_backoff_strategy_is_kept(kind):
    """A strategy that has a length of 0 is one all the same."""

    class Empty:
        def __len__(self):
            return 0

        def compute_next_backoff_delay(self, retry_attempt):
            return 0.0

    empty = Empty()

    assert empty is kind(backoff_strategy=empty).backoff_strategy


@each_kind
async def test_copy_is_the_strategy_itself(strategy):
    """Settings are copied by others; calls that have begun go on, with their quota."""
    assert strategy is copy.copy(strategy)
    assert strategy is copy.deepcopy({"retry": strategy})["retry"]


@pytest.mark.parametrize("name", ["standard", "adaptive", "adaptive, plain"])
def test_strategy_is_not_pickled(name):
    """Another process could not share its quotas; the error says so."""
    kind = KINDS[name]
    expected = f"{kind.__name__} cannot be pickled: it holds shared state"
    with raises_exactly(expected, TypeError):
        pickle.dumps(kind())
