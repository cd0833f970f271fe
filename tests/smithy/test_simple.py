"""The simple mode."""

import pytest
from chains import bad_argument
from token_strategies import acquire, refresh

from aioretry_smithy import Backoff
from aioretry_smithy.smithy import from_backoff
from aioretry_smithy.smithy.interfaces import CallError, ExponentialRetryBackoffStrategy
from aioretry_smithy.smithy.strategies import SimpleRetryStrategy


class Linear:
    """A backoff strategy that also makes the first attempt wait."""

    def compute_next_backoff_delay(self, retry_attempt):
        return 0.5 + retry_attempt


@pytest.fixture
def strategy():
    """A strategy with three attempts and delays that are easily told apart."""
    return SimpleRetryStrategy(backoff_strategy=Linear(), max_attempts=3)


def test_defaults_are_those_of_smithy_python():
    """Five attempts, and the default backoff."""
    strategy = SimpleRetryStrategy()

    assert 5 == strategy.max_attempts
    assert ExponentialRetryBackoffStrategy() == strategy.backoff_strategy


async def test_tokens_count_attempts_and_have_delays(strategy):
    """The delay of each attempt is what the backoff strategy says, also the first."""
    tokens = [await acquire(strategy, "orders")]
    for _ in range(2):
        tokens.append(await refresh(strategy, tokens[-1]))
    await strategy.record_success(token=tokens[-1])

    assert [(0, 1, 0.5), (1, 2, 1.5), (2, 3, 2.5)] == [
        (token.retry_count, token.attempt_count, token.retry_delay) for token in tokens
    ]


@pytest.mark.parametrize(("hint", "delay"), [(0.0, 1.5), (1.0, 1.5), (60.0, 60.0)])
async def test_hint_of_the_server_is_a_floor(strategy, hint, delay):
    """The server gets its wish, and the delay is never shorter than without."""
    error = CallError(fault="server", retry_after=hint)
    token = await refresh(strategy, await acquire(strategy), error)

    assert delay == token.retry_delay


async def test_without_a_hint_there_is_no_floor():
    """A delay of 0 stays one."""
    strategy = SimpleRetryStrategy(backoff_strategy=from_backoff(Backoff.fixed(0)))

    assert 0.0 == (await refresh(strategy, await acquire(strategy))).retry_delay


def test_attempts_have_no_other_default():
    """There is no profile that could say how many there are."""
    with bad_argument("max_attempts", None, "an int >= 1"):
        SimpleRetryStrategy(max_attempts=None)


async def test_repr_shows_the_settings():
    """Strategies and tokens can be read in a log."""
    backoff = from_backoff(Backoff.fixed(1))
    strategy = SimpleRetryStrategy(backoff_strategy=backoff, max_attempts=2)
    token = await acquire(strategy)

    assert (
        "SimpleRetryStrategy(backoff_strategy=from_backoff(Backoff.fixed(1.0)), "
        "max_attempts=2)"
    ) == repr(strategy)
    assert "SimpleRetryToken(retry_count=0, retry_delay=0.0)" == repr(token)
