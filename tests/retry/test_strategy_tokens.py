"""Tokens from strategies of one's own, and from those of this library."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from chains import URL, now
from chains import retrying_session as session
from token_strategies import (
    SCOPE,
    THROTTLED,
    Async,
    Plain,
    Token,
    standard,
    status_and_log,
)

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryConfig,
    RetryingClient,
    RetryStopReason,
    capture_logs,
    smithy,
)
from aioretry_smithy.smithy import sync
from aioretry_smithy.testing import VirtualTimeLoop


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
        async with session([503], strategy) as client:
            with pytest.raises(ValueError) as caught:
                await client.get(URL)

        assert f"{name}: None (expected: a token)" == str(caught.value)


async def waits_of(strategy):
    """Make two calls, the second of which the quota ends, and return their waits."""
    waits: list[Any] = []
    async with session([THROTTLED, 503, 200, THROTTLED, 503], strategy) as client:
        for _ in range(2):
            async with client.get(URL) as response:
                log = RequestLog.of(response)
            waits += [(each.delay, each.delay_source) for each in log.children]
            waits.append(strategy.quota_for().available_capacity)
    return [*waits, now()]


@pytest.mark.parametrize("name", ["StandardRetryStrategy", "AdaptiveRetryStrategy"])
def test_plain_strategies_wait_as_the_awaited_ones(name):
    """Backoff, rate and quota are waited for by the loop, and seen in the log."""
    fixed = smithy.from_backoff(Backoff.fixed(0.5))
    seen = []
    for module, settings in (smithy, {}), (sync, {"sleep": pytest.fail}):
        strategy = getattr(module, name)(
            backoff_strategy=fixed,
            throttling_backoff_strategy=fixed,
            long_polling=True,
            retry_quota=smithy.StandardRetryQuota(20),
            **settings,
        )
        # Rates are measured by half seconds of the clock, so each begins at 0.
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            seen.append(runner.run(waits_of(strategy)))

    assert seen[0] == seen[1]
    assert [15, 10] == [value for value in seen[1] if isinstance(value, int)]
    assert seen[1][-1] >= 2.0


async def test_plain_simple_strategy_is_asked_by_its_methods():
    """They wait for nothing, so they may be called in a coroutine."""
    strategy = sync.SimpleRetryStrategy(
        backoff_strategy=smithy.from_backoff(Backoff.fixed(0.5))
    )
    status, log = await status_and_log(session([503, 503, 200], strategy))

    assert (200, 3, 1.0) == (status, len(log.children), now())


@pytest.mark.parametrize(
    ("kind", "settings", "is_refused"),
    [
        (sync.AdaptiveRetryStrategy, {}, True),
        (sync.AdaptiveRetryStrategy, {"fail_fast": True}, False),
        (sync.StandardRetryStrategy, {"long_polling": True}, True),
        (sync.StandardRetryStrategy, {}, False),
        (sync.SimpleRetryStrategy, {}, False),
        (smithy.AdaptiveRetryStrategy, {}, False),
        (smithy.StandardRetryStrategy, {"long_polling": True}, False),
    ],
)
async def test_methods_that_would_hold_up_the_loop_are_refused(
    kind, settings, is_refused
):
    """A subclass that overrides one is asked by its methods, which must not sleep."""

    class Mine(kind):
        def record_success(self, *, token):
            return super().record_success(token=token)

    assert RetryConfig(kind(**settings))
    strategy = Mine(**settings)
    if not is_refused:
        assert 200 == (await status_and_log(session([200], strategy)))[0]
        return
    with pytest.raises(ValueError) as caught:
        RetryingClient.new_decorator(strategy)

    expected = "methods that do not sleep; derive from smithy, not smithy.sync"
    assert f"strategy: {strategy!r} (expected: {expected})" == str(caught.value)


async def test_mocked_method_of_a_strategy_of_ours_is_asked(monkeypatch):
    """What stands in its place in the object counts as overriding."""
    strategy = standard()
    seen = []
    monkeypatch.setattr(strategy, "record_success", lambda *, token: seen.append(token))
    await status_and_log(session([200], strategy))

    assert 1 == len(seen)


@pytest.mark.parametrize("kind", [Plain, Async])
async def test_token_may_have_no_delay(kind):
    """None is no wait, as in Smithy's guide, before the first attempt and others."""

    class Hasty(kind):
        def refresh_retry_token_for_retry(self, *, token_to_renew, error):
            return Token(token_to_renew.retry_count + 1, None)

    status, log = await status_and_log(session([503, 503, 200], Hasty(None)))

    assert (200, 3, 0.0) == (status, len(log.children), now())


@pytest.mark.parametrize("thing", [5, "token", SimpleNamespace(retry_count=0)])
async def test_thing_without_a_delay_is_no_token(thing):
    """It is named at once, with the method that it comes from."""
    strategy = Plain()
    strategy.acquire_initial_retry_token = lambda *, token_scope: thing
    async with session([200], strategy) as client:
        with pytest.raises(ValueError) as caught:
            await client.get(URL)

    expected = f"acquire_initial_retry_token: {thing!r} (expected: a token)"
    assert expected == str(caught.value)


@pytest.mark.parametrize("delay", [-1.0, float("inf"), "1"])
async def test_token_with_a_senseless_delay_is_told_at_once(delay):
    """What a strategy's token asks to wait must be seconds."""
    async with session([200], Plain(delay)) as client:
        with pytest.raises(ValueError) as caught:
            await client.get(URL)

    expected = "seconds, finite and >= 0, or None"
    assert f"retry_delay: {delay!r} (expected: {expected})" == str(caught.value)


async def test_error_in_a_strategy_goes_to_the_caller():
    """With the failure of the attempt as its context."""

    class Broken(Plain):
        def refresh_retry_token_for_retry(self, **_):
            raise KeyError("oops")

    cause = TimeoutError()
    with capture_logs() as logs:
        async with session([cause], Broken()) as client:
            with pytest.raises(KeyError) as caught:
                await client.get(URL)

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


async def test_subclass_that_overrides_a_method_is_asked_by_its_methods():
    """What somebody wrote over ours is what happens."""
    refreshed = []

    class Watching(smithy.AdaptiveRetryStrategy):
        async def refresh_retry_token_for_retry(self, *, token_to_renew, error):
            refreshed.append(str(error))
            return await super().refresh_retry_token_for_retry(
                token_to_renew=token_to_renew, error=error
            )

    strategy = Watching(backoff_strategy=smithy.from_backoff(Backoff.fixed(0.5)))
    status, log = await status_and_log(session([503, 200], strategy))

    assert (200, ["status 503"]) == (status, refreshed)
    # It has waited itself, so there was no delay left to see.
    assert (0.0, 0.5) == (log.children[0].delay, log.duration)


@pytest.mark.parametrize(
    "strategy", [smithy.StandardRetryStrategy, object(), "standard"]
)
def test_what_hands_out_no_tokens_is_no_strategy(strategy):
    """A class instead of an object of it is the likely slip."""
    with pytest.raises(ValueError, match="strategy: .* a Smithy strategy"):
        RetryingClient.new_decorator(strategy)
