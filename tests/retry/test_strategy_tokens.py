"""Tokens from strategies of the user's, and errors for wrong ones."""

from __future__ import annotations

import pytest
from chains import bad_argument, now, raises_exactly, response_of, status_and_log
from chains import retrying_session as session
from token_strategies import SCOPE, Async, Plain, Token

from aioretry_smithy import RetryingClient, RetryStopReason, capture_logs, smithy


@pytest.mark.parametrize("kind", [Plain, Async])
async def test_strategy_of_ones_own_is_asked_for_each_token(kind):
    """Plain or async: a token before each attempt, and the last one goes back."""
    strategy = kind()
    status, log = await status_and_log(session([503, TimeoutError(), 200], strategy))

    assert 200 == status
    assert [
        ("acquire", SCOPE),
        ("refresh", 0, "status 503"),
        ("refresh", 1, "TimeoutError"),
        ("success", 2),
    ] == strategy.seen
    assert [0.5, 0.5, None] == [child.delay for child in log.children]
    assert (None, None) == (log.stop_reason, log.retry_error)
    assert 1.0 == log.duration


async def test_strategy_that_returns_no_token_is_told_at_once():
    """A forgotten return is the likely slip."""

    class Forgetful(Plain):
        def refresh_retry_token_for_retry(self, **_):
            pass

    class Absent(Plain):
        def acquire_initial_retry_token(self, **_):
            pass

    for strategy, name in (
        (Forgetful(), "refresh_retry_token_for_retry"),
        (Absent(), "acquire_initial_retry_token"),
    ):
        with raises_exactly(f"{name}: None (expected: a token)"):
            await response_of(session([503], strategy))


@pytest.mark.parametrize("kind", [Plain, Async])
async def test_token_may_have_no_delay(kind):
    """None is no wait, as in Smithy's guide, before the first attempt and others."""

    class Hasty(kind):
        def refresh_retry_token_for_retry(self, *, token_to_renew, error):
            return Token(token_to_renew.retry_count + 1, None)

    status, log = await status_and_log(session([503, 503, 200], Hasty(None)))

    assert (200, 3, 0.0) == (status, len(log.children), now())


@pytest.mark.parametrize("thing", [5, "token", object()])
async def test_thing_without_a_delay_is_no_token(thing):
    """It is named at once, with the method that it comes from."""
    strategy = Plain()
    strategy.acquire_initial_retry_token = lambda *, token_scope: thing
    with bad_argument("acquire_initial_retry_token", thing, "a token"):
        await response_of(session([200], strategy))


@pytest.mark.parametrize("delay", [-1.0, float("inf"), "1"])
async def test_token_with_a_senseless_delay_is_told_at_once(delay):
    """The delay in a strategy's token must be seconds."""
    with bad_argument("retry_delay", delay, "finite and >= 0, or None"):
        await response_of(session([200], Plain(delay)))


async def test_error_in_a_strategy_goes_to_the_caller():
    """With the failure of the attempt as its context."""

    class Broken(Plain):
        def refresh_retry_token_for_retry(self, **_):
            raise KeyError("oops")

    cause = TimeoutError()
    with capture_logs() as logs, pytest.raises(KeyError) as caught:
        await response_of(session([cause], Broken()))

    assert cause is caught.value.__context__
    assert RetryStopReason.ERROR == logs[0].stop_reason


async def test_error_while_recording_a_success_is_logged(caplog):
    """The call has succeeded, and stays so."""

    class Broken(Plain):
        def record_success(self, *, token):
            raise KeyError("oops")

    status, log = await status_and_log(session([200], Broken()))

    assert (200, None) == (status, log.stop_reason)
    (record,) = caplog.records
    assert ("aioretry_smithy", "WARNING") == (record.name, record.levelname)
    assert "a retry strategy failed to record a success" == record.message
    assert isinstance(record.exc_info[1], KeyError)


@pytest.mark.parametrize(
    "strategy", [smithy.StandardRetryStrategy, object(), "standard"]
)
def test_what_hands_out_no_tokens_is_no_strategy(strategy):
    """A class instead of an object of it is the likely slip."""
    with pytest.raises(ValueError, match="strategy: .* a Smithy strategy"):
        RetryingClient.new_decorator(strategy)
