"""The simple mode."""

import copy
import math

import pytest
from chains import bad_argument, raises_exactly

from aioretry_smithy import Backoff
from aioretry_smithy.smithy import from_backoff
from aioretry_smithy.smithy.backoff import (
    ExponentialRetryBackoffStrategy,
)
from aioretry_smithy.smithy.errors import (
    BackoffExhaustedError,
    CallError,
    RetryError,
)
from aioretry_smithy.smithy.strategies import SimpleRetryStrategy

ERROR = CallError("503", fault="server", status=503)


class Linear:
    """A backoff strategy that also makes the first attempt wait."""

    def compute_next_backoff_delay(self, retry_attempt):
        return 0.5 + retry_attempt


@pytest.fixture
def strategy():
    """A strategy with three attempts and delays that are easily told apart."""
    return SimpleRetryStrategy(backoff_strategy=Linear(), max_attempts=3)


async def refresh(strategy, token, error=ERROR):
    """Ask for the token of the next attempt."""
    return await strategy.refresh_retry_token_for_retry(
        token_to_renew=token, error=error
    )


def test_defaults_are_those_of_smithy_python():
    """Five attempts, and the default backoff."""
    strategy = SimpleRetryStrategy()

    assert 5 == strategy.max_attempts
    assert ExponentialRetryBackoffStrategy() == strategy.backoff_strategy


async def test_tokens_count_attempts_and_have_delays(strategy):
    """The delay of each attempt is what the backoff strategy says, also the first."""
    tokens = [await strategy.acquire_initial_retry_token(token_scope="orders")]
    for _ in range(2):
        tokens.append(await refresh(strategy, tokens[-1]))
    await strategy.record_success(token=tokens[-1])

    assert [(0, 1, 0.5), (1, 2, 1.5), (2, 3, 2.5)] == [
        (token.retry_count, token.attempt_count, token.retry_delay) for token in tokens
    ]


async def test_attempts_have_an_end(strategy):
    """After the last attempt there is no token, and the error says why."""
    token = await strategy.acquire_initial_retry_token()
    token = await refresh(strategy, await refresh(strategy, token))
    with pytest.raises(RetryError, match=r"^all attempts are made: 3$") as caught:
        await refresh(strategy, token)

    assert ERROR is caught.value.__cause__
    assert caught.value.retry_after is None


@pytest.mark.parametrize("error", [ValueError("bad"), CallError(is_retry_safe=False)])
async def test_error_that_allows_no_retry_ends_the_call(strategy, error):
    """An error that is not known to be harmless is not risked again."""
    token = await strategy.acquire_initial_retry_token()
    with raises_exactly(f"the error allows no retry: {error!r}", RetryError) as caught:
        await refresh(strategy, token, error)

    assert error is caught.value.__cause__


@pytest.mark.parametrize(("hint", "delay"), [(0.0, 1.5), (1.0, 1.5), (60.0, 60.0)])
async def test_hint_of_the_server_is_a_floor(strategy, hint, delay):
    """The server gets its wish, and the delay is never shorter than without."""
    token = await strategy.acquire_initial_retry_token()
    token = await refresh(strategy, token, CallError(fault="server", retry_after=hint))

    assert delay == token.retry_delay


async def test_without_a_hint_there_is_no_floor():
    """A delay of 0 stays one."""
    strategy = SimpleRetryStrategy(backoff_strategy=from_backoff(Backoff.fixed(0)))
    token = await refresh(strategy, await strategy.acquire_initial_retry_token())

    assert 0.0 == token.retry_delay


async def test_exhausted_backoff_ends_the_call():
    """A Backoff that stops is a refusal like any other."""
    backoff = Backoff.fixed(1).with_max_attempts(1)
    strategy = SimpleRetryStrategy(backoff_strategy=from_backoff(backoff))
    token = await strategy.acquire_initial_retry_token()
    with pytest.raises(BackoffExhaustedError) as caught:
        await refresh(strategy, token)

    assert ERROR is caught.value.__cause__


async def test_token_is_good_for_one_use(strategy):
    """Neither refreshing nor success takes a token that was used before."""
    token = await strategy.acquire_initial_retry_token()
    newer = await refresh(strategy, token)
    await strategy.record_success(token=newer)

    for used in (token, newer):
        expected = f"{used!r} (expected: not used before)"
        with raises_exactly(f"token_to_renew: {expected}"):
            await refresh(strategy, used)
        with raises_exactly(f"token: {expected}"):
            await strategy.record_success(token=used)


async def test_token_of_another_strategy_is_refused(strategy):
    """The mistake is named, and the token stays good where it came from."""
    other = SimpleRetryStrategy()
    token = await other.acquire_initial_retry_token()
    with bad_argument("token_to_renew", token, "issued by this strategy"):
        await refresh(strategy, token)
    await other.record_success(token=token)


@pytest.mark.parametrize("token", [None, "token", 0])
async def test_something_else_is_no_token(strategy, token):
    """A foreign object is a mistake in the program."""
    with bad_argument("token_to_renew", token, "a SimpleRetryToken", TypeError):
        await refresh(strategy, token)
    with pytest.raises(TypeError):
        await strategy.record_success(token=token)


async def test_scope_is_text(strategy):
    """A scope that no strategy could use is refused here, too."""
    with raises_exactly("token_scope: 443 (expected: a str, or None)"):
        await strategy.acquire_initial_retry_token(token_scope=443)


@pytest.mark.parametrize("max_attempts", [0, -1, 3.0, True, "3", None, math.inf])
def test_bad_max_attempts_are_refused(max_attempts):
    """There is at least one attempt."""
    with bad_argument("max_attempts", max_attempts, "an int >= 1"):
        SimpleRetryStrategy(max_attempts=max_attempts)


def test_backoff_is_no_backoff_strategy():
    """The bridge has to be crossed, and the error says which one."""
    with pytest.raises(ValueError, match=r"^backoff_strategy: .*see from_backoff\(\)"):
        SimpleRetryStrategy(backoff_strategy=Backoff.fixed(1))


def test_class_is_no_backoff_strategy():
    """A forgotten pair of parentheses is found at once, not by the first retry."""
    with pytest.raises(ValueError, match=r"^backoff_strategy: <class .*Linear'>"):
        SimpleRetryStrategy(backoff_strategy=Linear)


async def test_falsy_backoff_strategy_is_kept():
    """A strategy that has a length of 0 is one all the same."""

    class Empty(Linear):
        def __len__(self):
            return 0

    empty = Empty()

    assert empty is SimpleRetryStrategy(backoff_strategy=empty).backoff_strategy


async def test_copy_takes_the_tokens_of_the_original(strategy):
    """Settings are copied by others; calls that have begun go on."""
    token = await strategy.acquire_initial_retry_token()

    for copied in (copy.copy(strategy), copy.deepcopy(strategy)):
        token = await refresh(copied, token)
    assert 3 == token.attempt_count


async def test_repr_shows_the_settings():
    """Strategies and tokens can be read in a log."""
    strategy = SimpleRetryStrategy(
        backoff_strategy=from_backoff(Backoff.fixed(1)), max_attempts=2
    )
    token = await strategy.acquire_initial_retry_token()
    backoff = "from_backoff(Backoff.fixed(1.0))"

    assert f"SimpleRetryStrategy(backoff_strategy={backoff}, max_attempts=2)" == repr(
        strategy
    )
    assert "SimpleRetryToken(retry_count=0, retry_delay=0.0)" == repr(token)
