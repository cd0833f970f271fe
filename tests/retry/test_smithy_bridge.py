"""Smithy strategies in the retrying client: tokens, limits, waits, the log."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    FailFastError,
    HttpRequest,
    RequestLog,
    ResponseTimeoutError,
    RetryConfig,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
    smithy,
)
from aioretry_smithy.testing import ScriptedTransport

if TYPE_CHECKING:
    from aioretry_smithy import ClientRequestContext, Decorator

URL = "http://localhost/orders"
SCOPE = "localhost:80"
THROTTLED = (429, {}, b"")


@dataclasses.dataclass(frozen=True)
class Token:
    """All that a token of one's own needs."""

    retry_count: int
    retry_delay: float


class Plain:
    """A strategy as the design document of smithy-python has it, and its memory."""

    backoff_strategy = smithy.from_backoff(Backoff.fixed(0.5))
    max_attempts = 3

    def __init__(self, initial_delay: float = 0.0) -> None:
        self.initial_delay = initial_delay
        self.seen: list[tuple[Any, ...]] = []

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Token:
        self.seen.append(("acquire", token_scope))
        return Token(0, self.initial_delay)

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> Token:
        self.seen.append(("refresh", token_to_renew.retry_count, str(error)))
        count = token_to_renew.retry_count + 1
        if count >= self.max_attempts or not smithy.RetryInfo.of(error).allows_retry:
            raise smithy.RetryError("no more")
        return Token(count, self.backoff_strategy.compute_next_backoff_delay(count))

    def record_success(self, *, token: Any) -> None:
        self.seen.append(("success", token.retry_count))


class Async(Plain):
    """The same, as in smithy-python today."""

    async def acquire_initial_retry_token(  # type: ignore[override]
        self, *, token_scope: str | None = None
    ) -> Token:
        await asyncio.sleep(0)
        return super().acquire_initial_retry_token(token_scope=token_scope)

    async def refresh_retry_token_for_retry(  # type: ignore[override]
        self, *, token_to_renew: Any, error: Exception
    ) -> Token:
        await asyncio.sleep(0)
        return super().refresh_retry_token_for_retry(
            token_to_renew=token_to_renew, error=error
        )

    async def record_success(self, *, token: Any) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().record_success(token=token)


class Refusing(Plain):
    """Has no initial token for anybody."""

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Token:
        raise smithy.RetryError("none left")


def standard(**settings: Any) -> smithy.StandardRetryStrategy:
    """Make a standard strategy whose delays are not left to chance."""
    settings.setdefault("backoff_strategy", smithy.from_backoff(Backoff.fixed(0.5)))
    settings.setdefault(
        "throttling_backoff_strategy", smithy.from_backoff(Backoff.fixed(2.0))
    )
    return smithy.StandardRetryStrategy(**settings)


def adaptive(**settings: Any) -> smithy.AdaptiveRetryStrategy:
    """Make an adaptive strategy whose delays are not left to chance."""
    fixed = smithy.from_backoff(Backoff.fixed(0.5))
    return smithy.AdaptiveRetryStrategy(
        backoff_strategy=fixed, throttling_backoff_strategy=fixed, **settings
    )


def session(
    answers: list[Any],
    strategy: Any,
    *inside: Decorator,
    timeout: float | None = None,
    **settings: Any,
) -> aiohttp.ClientSession:
    """Build a session that gets *answers* and asks *strategy*."""
    transport = ScriptedTransport(answers)
    builder = SessionBuilder().decorator(transport)
    for decorator in inside:
        builder.decorator(decorator)
    builder.decorator(RetryingClient.new_decorator(strategy, **settings))
    builder.response_timeout(timeout)
    return builder.build()


async def status_and_log(client: aiohttp.ClientSession) -> tuple[int, RequestLog]:
    """Make one call."""
    async with client, client.get(URL) as response:
        await response.read()
        return response.status, RequestLog.of(response)


def now() -> float:
    return asyncio.get_running_loop().time()


def available(strategy: smithy.StandardRetryStrategy) -> int:
    return strategy.quota_for(SCOPE).available_capacity


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


async def test_success_at_once_waits_for_nothing():
    """One attempt, no delay anywhere, and the quota gets its one for a good call."""
    strategy = standard(retry_quota=smithy.StandardRetryQuota(20))
    strategy.quota_for(None).acquire(error=ValueError())
    status, log = await status_and_log(session([200], strategy))

    assert (200, 1, None) == (status, log.total_attempts, log.delay)
    assert 7 == strategy.quota_for(None).available_capacity


async def test_standard_strategy_pays_and_gets_back_the_last_cost():
    """Two retries cost 28; the success gives back the last 14."""
    strategy = standard()
    status, log = await status_and_log(session([500, 502, 200], strategy))

    assert (200, 3, 486) == (status, log.total_attempts, available(strategy))
    assert ["backoff", "backoff", None] == [each.delay_source for each in log.children]


async def test_attempts_of_the_strategy_end_in_the_last_response():
    """The 503 is handed over; the log has the reason and the error."""
    strategy = standard()
    status, log = await status_and_log(session([500, 502, 503], strategy))

    assert 503 == status
    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason
    assert isinstance(log.retry_error, smithy.RetryError)
    assert log.retry_error.__cause__.status == 503
    assert "all attempts are made" in log.to_dict()["retry_error"]


async def test_own_limit_of_attempts_stops_before_the_strategy_is_asked():
    """The second failure costs nothing, because no third attempt could follow."""
    strategy = standard()
    status, log = await status_and_log(
        session([500, 503], strategy, max_total_attempts=2)
    )

    assert (503, 486) == (status, available(strategy))
    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason
    assert log.retry_error is None


async def test_empty_quota_ends_in_the_last_response():
    """The reason is the limiter, and the error says when there may be a token."""
    strategy = standard(retry_quota=smithy.StandardRetryQuota(20))
    status, log = await status_and_log(session([500, 503], strategy))

    assert 503 == status
    assert RetryStopReason.LIMITER == log.stop_reason
    assert 0.5 == log.retry_error.retry_after
    assert 6 == strategy.quota_for(None).available_capacity


async def test_failure_that_allows_no_retry_costs_nothing():
    """A 404 is a 404 after one attempt; the strategy was asked and said no."""
    strategy = standard()
    status, log = await status_and_log(session([404], strategy))

    assert (404, 1, 500) == (status, log.total_attempts, available(strategy))
    assert RetryStopReason.NO_RETRY == log.stop_reason
    assert isinstance(log.retry_error, smithy.RetryError)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (404, RetryStopReason.NO_RETRY),
        (503, RetryStopReason.MAX_TOTAL_ATTEMPTS),
    ],
)
async def test_reason_at_the_limit_is_the_limit_only_for_what_could_be_retried(
    answer, reason
):
    """With one attempt allowed nobody is asked, and a 404 is still no retry."""
    strategy = Plain()
    _, log = await status_and_log(session([answer], strategy, max_total_attempts=1))

    assert reason == log.stop_reason
    assert [("acquire", SCOPE)] == strategy.seen


async def test_body_that_cannot_be_sent_again_costs_nothing():
    """The strategy is not asked for a retry that could not be made."""

    async def body():
        yield b"once"

    strategy = standard()
    async with (
        session([500], strategy) as client,
        client.post(URL, data=body()) as response,
    ):
        log = RequestLog.of(response)

    assert RetryStopReason.BODY_NOT_REPLAYABLE == log.stop_reason
    assert 500 == available(strategy)


async def test_method_does_not_matter_to_a_strategy_of_smithy():
    """A POST is retried like a GET, as in the SDKs."""
    async with (
        session([500, 200], standard()) as client,
        client.post(URL, data=b"x") as response,
    ):
        assert (200, 2) == (response.status, RequestLog.of(response).total_attempts)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (200, None),
        (404, RetryStopReason.NO_RETRY),
        (503, RetryStopReason.LIMITER),
    ],
)
async def test_refused_initial_token_means_one_attempt(answer, reason):
    """It is made, neither retried nor recorded, and the log has the refusal."""
    strategy = Refusing()
    status, log = await status_and_log(session([answer], strategy))

    assert (answer, reason) == (status, log.stop_reason)
    assert "none left" == str(log.retry_error)
    assert [] == strategy.seen


async def test_initial_delay_is_waited_and_seen_in_the_log():
    """An initial token may ask for a wait; the log of the call has it."""
    status, log = await status_and_log(session([200], Plain(1.5)))

    assert (200, 1.5, "backoff") == (status, log.delay, log.delay_source)
    assert 1.5 == log.duration
    assert 0.0 == log.children[0].duration
    assert log.render().splitlines()[0].endswith("first waited 1.500 s (backoff)")


async def test_initial_delay_of_a_strategy_of_ours_comes_before_the_rate_limiter():
    """A backoff strategy of one's own may ask for a wait before the first attempt."""

    class Slow:
        def compute_next_backoff_delay(self, retry_attempt):
            return 0.5

    strategy = smithy.AdaptiveRetryStrategy(backoff_strategy=Slow(), max_attempts=1)
    _, first = await status_and_log(session([THROTTLED], strategy))
    _, second = await status_and_log(session([200], strategy))

    assert (0.5, "backoff") == (first.delay, first.delay_source)
    # One answer in half a second is 1.6 a second, of which 0.7 are left.
    assert pytest.approx(1 / 1.12) == second.delay
    assert "rate_limit" == second.delay_source


async def test_initial_delay_beyond_the_deadline_ends_the_call_at_once():
    """Nobody waits for an attempt that cannot be made in time."""
    with capture_logs() as logs:
        async with session([], Plain(5.0), timeout=5.0) as client:
            with pytest.raises(ResponseTimeoutError):
                await client.get(URL)

    assert 0.0 == now()
    assert RetryStopReason.DEADLINE == logs[0].stop_reason


@pytest.mark.parametrize("delay", [None, -1.0, float("inf"), "1"])
async def test_token_without_a_delay_is_told_at_once(delay):
    """What a strategy's token asks to wait must be seconds."""
    async with session([200], Plain(delay)) as client:
        with pytest.raises(ValueError) as caught:
            await client.get(URL)

    expected = "seconds, finite and >= 0"
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
    assert isinstance(record.exc_info[1], KeyError)


async def test_open_circuit_never_reaches_the_strategy():
    """Nothing was sent, so nothing is retried, paid or measured."""
    strategy = adaptive()
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    inside = CircuitBreakerClient.new_decorator(breaker)
    with capture_logs() as logs:
        async with session([], strategy, inside) as client:
            with pytest.raises(FailFastError):
                await client.get(URL)

    assert (RetryStopReason.NO_RETRY, None) == (
        logs[0].stop_reason,
        logs[0].retry_error,
    )
    assert 500 == available(strategy)
    assert 0.0 == strategy.limiter_for(SCOPE).measured_rate


async def test_cancellation_never_reaches_the_strategy():
    """Neither while an attempt is made nor while a retry is waited for."""
    for answers, seen in ([(lambda *_: asyncio.sleep(9))], 1), ([503], 2):
        strategy = Plain()
        with capture_logs() as logs:
            async with session(answers, strategy) as client:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.25):
                        await client.get(URL)

        assert seen == len(strategy.seen)
        assert RetryStopReason.CANCELLED == logs[0].stop_reason


async def test_hint_of_the_server_is_obeyed_in_full():
    """The strategy alone would cap it; the retrying client stands above it."""
    answer = (503, {"Retry-After": "10"}, b"")
    _, log = await status_and_log(session([answer, 200], standard()))

    first = log.children[0]
    assert (10.0, "retry_after") == (first.delay, first.delay_source)


async def test_hint_of_the_server_is_left_to_the_strategy_on_request():
    """With use_retry_after off the strategy clamps it to five seconds more."""
    answer = (503, {"x-amz-retry-after": "10000"}, b"")
    client = session([answer, 200], standard(), use_retry_after=False)
    _, log = await status_and_log(client)

    first = log.children[0]
    assert (5.5, "backoff") == (first.delay, first.delay_source)


@pytest.mark.parametrize(
    ("seconds", "deadline"),
    [("61", None), ("5", 5.0)],
)
async def test_hint_that_nobody_waits_for_costs_nothing(seconds, deadline):
    """The call ends with the response before the strategy is asked to pay."""
    strategy = standard()
    answer = (503, {"Retry-After": seconds}, b"")
    status, log = await status_and_log(session([answer], strategy, timeout=deadline))

    assert (503, 500) == (status, available(strategy))
    assert RetryStopReason.RETRY_AFTER_TOO_LONG == log.stop_reason


async def test_delay_beyond_the_deadline_ends_the_call():
    """With the last response, and without a wait."""
    client = session([503, 503], standard(), timeout=0.75)
    status, log = await status_and_log(client)

    assert (503, 0.5, 2) == (status, now(), log.total_attempts)
    assert RetryStopReason.DEADLINE == log.stop_reason


async def test_retry_that_the_deadline_forbids_is_paid_back():
    """What was not sent has loaded nobody."""
    strategy = standard()
    await status_and_log(session([503], strategy, timeout=0.25))

    assert 500 == available(strategy)


async def test_attempt_that_the_deadline_cut_is_no_question():
    """The strategy has nothing to say about the end of time."""
    strategy = Plain()
    async with session([lambda *_: asyncio.sleep(9)], strategy, timeout=1.0) as client:
        with pytest.raises(ResponseTimeoutError):
            await client.get(URL)

    assert [("acquire", SCOPE)] == strategy.seen


async def test_exhausted_backoff_is_a_reason_of_its_own():
    """A Backoff that says stop does so behind a Smithy strategy too."""
    backoff = smithy.from_backoff(Backoff.fixed(0.5).with_max_attempts(2))
    strategy = standard(backoff_strategy=backoff)
    _, log = await status_and_log(session([503, 503], strategy))

    assert RetryStopReason.BACKOFF_EXHAUSTED == log.stop_reason


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([503, 503, 503], RetryStopReason.MAX_TOTAL_ATTEMPTS),
        ([404], RetryStopReason.NO_RETRY),
    ],
)
async def test_reason_is_worked_out_for_strategies_of_ones_own(answers, reason):
    """A bare RetryError does not say why; the attempts and the failure do."""
    _, log = await status_and_log(session(answers, Plain()))

    assert reason == log.stop_reason


async def test_strategy_may_say_no_to_what_could_be_retried():
    """Without a limit in sight that is simply no retry."""

    class Choosy(Plain):
        max_attempts = None

        def refresh_retry_token_for_retry(self, **_):
            raise smithy.RetryError

    _, log = await status_and_log(session([503], Choosy()))

    assert RetryStopReason.NO_RETRY == log.stop_reason


async def test_retry_error_is_raised_on_request():
    """It comes from what the attempt failed with, and the response is closed."""
    strategy = standard(max_attempts=1)
    with capture_logs() as logs:
        async with session([503], strategy, raise_retry_error=True) as client:
            with pytest.raises(smithy.RetryError) as caught:
                await client.get(URL)

    error = caught.value
    assert (503, error) == (error.__cause__.status, logs[0].response_cause)
    assert error is logs[0].retry_error
    assert logs[0] is RequestLog.of(error)


@pytest.mark.parametrize("strategy", [Plain(), Refusing()])
async def test_retry_error_of_ones_own_strategy_gets_its_cause(strategy):
    """Also where the strategy raised it without one, or refused the first token."""
    last = aiohttp.ServerDisconnectedError()
    answers = [TimeoutError(), TimeoutError(), last]
    if isinstance(strategy, Refusing):
        answers = [last]
    async with session(answers, strategy, raise_retry_error=True) as client:
        with pytest.raises(smithy.RetryError) as caught:
            await client.get(URL)

    error = caught.value.__cause__
    assert isinstance(error, smithy.CallError)
    assert last is error.__cause__


async def test_retry_error_is_not_raised_for_what_was_never_worth_a_retry():
    """A 404 stays a response."""
    status, log = await status_and_log(
        session([404], standard(), raise_retry_error=True)
    )

    assert 404 == status
    assert isinstance(log.retry_error, smithy.RetryError)


async def test_long_poll_slows_down_when_the_quota_is_empty():
    """The caller, who will ask again at once, waits the delay of the lost retry."""
    quota = smithy.StandardRetryQuota(0)
    strategy = standard(retry_quota=quota, long_polling=True)
    status, log = await status_and_log(session([503], strategy))

    assert (503, 0.5) == (status, now())
    assert (0.5, "backoff") == (log.children[0].delay, log.children[0].delay_source)
    assert RetryStopReason.LIMITER == log.stop_reason


async def test_long_poll_does_not_wait_longer_than_the_deadline():
    """Nor for anything but the quota."""
    quota = smithy.StandardRetryQuota(0)
    strategy = standard(retry_quota=quota, long_polling=True)
    throttled, _ = await status_and_log(session([THROTTLED], strategy, timeout=1.0))
    unknown, log = await status_and_log(session([404], strategy))

    assert (429, 404, 0.0) == (throttled, unknown, now())
    assert log.children[0].delay is None


async def test_long_poll_that_is_cancelled_has_waited_until_then():
    """The log has the time that passed, and the reason."""
    quota = smithy.StandardRetryQuota(0)
    strategy = standard(retry_quota=quota, long_polling=True)
    with capture_logs() as logs:
        async with session([503], strategy) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.25):
                    await client.get(URL)

    assert 0.25 == logs[0].children[0].delay
    assert RetryStopReason.CANCELLED == logs[0].stop_reason


async def test_rate_limiter_holds_up_a_retry_after_the_backoff():
    """The wait for the limiter is in the log, and named for it."""
    strategy = adaptive()
    status, log = await status_and_log(session([THROTTLED, 200], strategy))

    first = log.children[0]
    assert 200 == status
    # Nothing was measured yet, so the rate is the least there is: one in two seconds,
    # of which the backoff took the first half.
    assert (2.0, "rate_limit") == (pytest.approx(first.delay), first.delay_source)
    assert log.duration == first.delay


async def test_rate_limiter_holds_up_a_first_attempt():
    """What one call was told counts for the next one to the same server."""
    strategy = adaptive(max_attempts=1)
    first, second = ([THROTTLED], [200])
    await status_and_log(session(first, strategy))
    status, log = await status_and_log(session(second, strategy))

    assert 200 == status
    assert (2.0, "rate_limit") == (pytest.approx(log.delay), log.delay_source)
    assert log.children[0].delay is None


async def test_rate_limiter_of_one_server_is_not_that_of_another():
    """A host that throttles slows down nobody else."""
    strategy = adaptive(max_attempts=1)
    async with session([THROTTLED, 200], strategy) as client:
        async with client.get("http://localhost/"):
            pass
        async with client.get("http://elsewhere/"):
            pass

    assert 0.0 == now()
    assert strategy.limiter_for(SCOPE).enabled
    assert not strategy.limiter_for("elsewhere:80").enabled


async def test_rate_limiter_that_grants_too_late_ends_the_call_at_once():
    """Before a first attempt there is no response to hand over."""
    strategy = adaptive(max_attempts=1)
    await status_and_log(session([THROTTLED], strategy))
    with capture_logs() as logs:
        async with session([], strategy, timeout=1.0) as client:
            with pytest.raises(ResponseTimeoutError):
                await client.get(URL)

    assert 0.0 == now()
    assert RetryStopReason.DEADLINE == logs[0].stop_reason


async def test_rate_limiter_that_grants_a_retry_too_late_ends_the_call():
    """When the backoff is over and the limiter would take longer than there is time."""
    strategy = adaptive()
    async with session([THROTTLED], strategy, timeout=1.5) as client:
        with pytest.raises(ResponseTimeoutError):
            await client.get(URL)

    assert 0.5 == now()


async def test_cancelled_wait_for_the_limiter_takes_nothing():
    """The next one in line does not wait longer for it."""
    strategy = adaptive(max_attempts=1)
    await status_and_log(session([THROTTLED], strategy))
    with capture_logs() as logs:
        async with session([], strategy) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.25):
                    await client.get(URL)
    await status_and_log(session([200], strategy))

    assert 1.25 == logs[0].delay
    assert RetryStopReason.CANCELLED == logs[0].stop_reason
    assert pytest.approx(2.0) == now()


async def test_failing_fast_refuses_a_first_attempt_without_capacity():
    """With an exception that says when to come back; nothing was sent."""
    strategy = adaptive(max_attempts=1, fail_fast=True)
    await status_and_log(session([THROTTLED], strategy))
    with capture_logs() as logs:
        async with session([], strategy) as client:
            with pytest.raises(smithy.CapacityNotAvailableError) as caught:
                await client.get(URL)

    assert pytest.approx(2.0) == caught.value.retry_after
    assert RetryStopReason.LIMITER == logs[0].stop_reason


async def test_failing_fast_ends_a_retry_without_capacity():
    """With the last response; the retry that was not sent is not paid for."""
    strategy = adaptive(fail_fast=True)
    status, log = await status_and_log(session([THROTTLED], strategy))

    assert (429, 0.0, 500) == (status, now(), available(strategy))
    assert RetryStopReason.LIMITER == log.stop_reason


async def test_failing_fast_takes_capacity_once_for_a_retry():
    """The limiter is asked when the retry is decided, not again after the backoff."""
    strategy = adaptive(fail_fast=True, max_attempts=2)
    await status_and_log(session([THROTTLED], strategy))
    await asyncio.sleep(10)
    limiter = strategy.limiter_for(SCOPE)
    before = limiter.capacity
    status, log = await status_and_log(session([200], strategy))

    assert (200, None) == (status, log.delay)
    assert before - 1.0 <= limiter.capacity


async def test_every_attempt_is_measured():
    """Also the one that the deadline cuts and the one that nobody retries."""
    strategy = adaptive()
    limiter = strategy.limiter_for(SCOPE)
    for answer, timeout in ((404, None), (lambda *_: asyncio.sleep(9), 1.0)):
        async with session([answer], strategy, timeout=timeout) as client:
            with suppress(ResponseTimeoutError):
                await client.get(URL)

    assert 0.0 < limiter.measured_rate
    assert not limiter.enabled


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


async def test_classifiers_of_ones_own_refine_the_verdict():
    """Here a 409 is worth a retry."""

    def conflicts(failure, previous):
        return smithy.RetryAction.retry() if failure.status == 409 else None

    client = session(
        [409, 200],
        standard(),
        classifiers=[*smithy.DEFAULT_CLASSIFIERS, conflicts],
    )
    status, log = await status_and_log(client)

    assert (200, 2) == (status, log.total_attempts)


async def test_classifier_keeps_retries_to_idempotent_requests():
    """A ready-made one, for services that do not recognise a repeated request."""
    classifiers = (*smithy.DEFAULT_CLASSIFIERS, smithy.only_idempotent)
    async with (
        session([503], standard(), classifiers=classifiers) as client,
        client.post(URL, data=b"x") as response,
    ):
        log = RequestLog.of(response)

    assert RetryStopReason.NO_RETRY == log.stop_reason


async def test_error_code_in_a_body_throttles_and_the_body_is_still_there():
    """A 400 of an AWS service that means too many requests."""
    body = b'{"__type": "com.amazonaws#ThrottlingException"}'
    answer = (400, {"Content-Type": "application/x-amz-json-1.0"}, body)
    strategy = standard(max_attempts=2)
    async with (
        session([answer, answer], strategy) as client,
        client.get(URL) as response,
    ):
        log = RequestLog.of(response)

        assert (400, body) == (response.status, await response.read())
    assert 2.0 == log.children[0].delay
    assert 495 == available(strategy)


async def test_body_is_read_inside_the_attempt_on_request():
    """buffer_response means the same as with the other strategies."""
    client = session([503, (200, {}, b"fine")], standard(), buffer_response=True)
    status, log = await status_and_log(client)

    assert (200, 2) == (status, log.total_attempts)


async def test_exception_that_knows_about_retries_is_believed():
    """A decorator inside may raise an error that carries the attributes itself."""

    class BusyError(Exception):
        is_retry_safe = True
        is_throttling_error = True
        retry_after = 3.0

    @client_decorator
    async def raising(
        delegate, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        response = await delegate.execute(ctx, request)
        if response.status == 418:
            response.close()
            raise BusyError
        return response

    strategy = standard()
    _, log = await status_and_log(session([418, 200], strategy, raising))

    assert (3.0, 2) == (log.children[0].delay, log.total_attempts)
    assert 500 == available(strategy)


@pytest.mark.parametrize(
    "strategy", [smithy.StandardRetryStrategy, object(), "standard"]
)
def test_what_hands_out_no_tokens_is_no_strategy(strategy):
    """A class instead of an object of it is the likely slip."""
    with pytest.raises(ValueError, match="strategy: .* a Smithy strategy"):
        RetryingClient.new_decorator(strategy)


@pytest.mark.parametrize(
    ("name", "value"),
    [("classifiers", ()), ("raise_retry_error", True)],
)
def test_settings_for_smithy_strategies_are_refused_elsewhere(name, value):
    """An option that would be ignored is an error."""
    with pytest.raises(ValueError) as caught:
        RetryConfig(RetryStrategy.failsafe(), **{name: value})

    expected = "only for a Smithy strategy"
    assert f"{name}: {value!r} (expected: {expected})" == str(caught.value)


@pytest.mark.parametrize("classifiers", [None, 1, ["by_status"]])
def test_classifiers_must_be_functions(classifiers):
    """Told when the configuration is made."""
    with pytest.raises(ValueError, match="classifiers: "):
        RetryConfig(Plain(), classifiers=classifiers)


async def test_ten_workers_settle_at_the_rate_that_a_server_admits():
    """It admits 20 requests a second; within 15 seconds the workers send 10 to 30."""
    sent: list[float] = []

    def admit(ctx: ClientRequestContext, request: HttpRequest) -> int:
        recent = [moment for moment in admitted if moment > now() - 1.0]
        sent.append(now())
        if len(recent) >= 20:
            return 429
        admitted[:] = [*recent, now()]
        return 200

    async def work(client: aiohttp.ClientSession) -> None:
        while now() < 20.0:
            async with client.get(URL):
                await asyncio.sleep(0.001)

    admitted: list[float] = []
    seeded = smithy.ExponentialRetryBackoffStrategy(
        backoff_scale_value=1.0, random=Random(1).random
    )
    strategy = smithy.AdaptiveRetryStrategy(
        backoff_strategy=seeded, throttling_backoff_strategy=seeded
    )
    async with (
        session([admit] * 100_000, strategy) as client,
        asyncio.TaskGroup() as workers,
    ):
        for _ in range(10):
            workers.create_task(work(client))
    rates = [
        sum(second <= moment < second + 1 for moment in sent) for second in range(20)
    ]

    assert all(10 <= rate <= 30 for rate in rates[15:20]), rates
