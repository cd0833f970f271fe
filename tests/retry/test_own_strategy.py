"""Strategies of this library: which are asked by their methods, and which may not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from chains import URL, bad_argument, now, status_and_log
from chains import retrying_session as session
from token_strategies import THROTTLED, standard

from aioretry_smithy import Backoff, RequestLog, RetryConfig, RetryingClient, smithy
from aioretry_smithy.smithy import sync
from aioretry_smithy.testing import VirtualTimeLoop


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
    with bad_argument(
        "strategy",
        strategy,
        "methods that do not sleep; derive from smithy, not smithy.sync",
    ):
        RetryingClient.new_decorator(strategy)


async def test_mocked_method_of_a_strategy_of_ours_is_asked(monkeypatch):
    """A replacement in the object counts as overriding."""
    strategy = standard()
    seen = []
    monkeypatch.setattr(strategy, "record_success", lambda *, token: seen.append(token))
    await status_and_log(session([200], strategy))

    assert 1 == len(seen)


async def test_subclass_that_overrides_a_method_is_asked_by_its_methods():
    """The overriding method decides."""
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
