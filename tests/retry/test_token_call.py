"""Smithy strategies in the retrying client: tokens, limits, waits, the log."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import suppress
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler

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
    new_response,
    smithy,
)
from aioretry_smithy.smithy import sync
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop

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


class Connected(ResponseHandler):
    """Pretends to have a connection, for a stream that is to wait for more."""

    connected = True


class Slow:
    """A backoff strategy that has the first attempt wait, too."""

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        return 0.5


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


async def test_attempts_of_the_strategy_end_in_the_last_exception():
    """The caller gets what the last attempt raised, and no RetryError."""
    last = aiohttp.ServerDisconnectedError()
    async with session([500, last], standard(max_attempts=2)) as client:
        with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
            await client.get(URL)

    assert last is caught.value
    assert isinstance(RequestLog.of(last).retry_error, smithy.RetryError)


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


@pytest.mark.parametrize("kind", [standard, Plain])
@pytest.mark.parametrize("case", ["body", "hint", "limiter"])
async def test_verdict_comes_before_all_limits(kind, case):
    """What nobody would retry is no retry, whatever else would stand in the way."""

    async def body():
        yield b"once"

    strategy = adaptive() if case == "limiter" and kind is standard else kind()
    if case == "limiter" and kind is standard:
        strategy.limiter_for(SCOPE).update(throttled=True)
        await asyncio.sleep(2.0)
    answer = (403, {"Retry-After": "3600"} if case == "hint" else {}, b"")
    async with (
        session([answer], strategy, timeout=0.2) as client,
        client.post(URL, data=body() if case == "body" else None) as response,
    ):
        log = RequestLog.of(response)

    assert RetryStopReason.NO_RETRY == log.stop_reason
    assert isinstance(log.retry_error, smithy.RetryError)


async def test_strategy_may_retry_what_nobody_else_would():
    """Up to the limit of attempts, which is then the reason; other limits hold too."""
    asked = []

    class Stubborn(Plain):
        def refresh_retry_token_for_retry(self, *, token_to_renew, error):
            asked.append(error.status)
            return Token(token_to_renew.retry_count + 1, 0.25)

    async def body():
        yield b"once"

    _, log = await status_and_log(session([404] * 4, Stubborn(), max_total_attempts=4))

    assert [404] * 3 == asked
    async with (
        session([404], Stubborn()) as client,
        client.post(URL, data=body()) as response,
    ):
        other = RequestLog.of(response)

    assert (4, 0.25) == (log.total_attempts, log.children[0].delay)
    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason
    assert RetryStopReason.BODY_NOT_REPLAYABLE == other.stop_reason


@pytest.mark.parametrize("refuses", [False, True])
async def test_no_attempt_begins_after_the_deadline(refuses):
    """Also where the strategy took its time to say so."""

    class Late(Plain):
        async def acquire_initial_retry_token(self, *, token_scope=None):
            await asyncio.sleep(2.0)
            if refuses:
                raise smithy.RetryError
            return Token(0, 0.0)

    with capture_logs() as logs:
        async with session([], Late(), timeout=1.0) as client:
            with pytest.raises(ResponseTimeoutError):
                await client.get(URL)

    assert ((), RetryStopReason.DEADLINE) == (logs[0].children, logs[0].stop_reason)


async def test_hint_within_the_reach_of_the_strategy_is_named_for_the_server():
    """The strategy waits as long as the server asks, which is why it waits."""
    answer = (503, {"Retry-After": "3"}, b"")
    _, log = await status_and_log(session([answer, 200], standard()))

    first = log.children[0]
    assert (3.0, "retry_after") == (first.delay, first.delay_source)


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


async def waits_of(strategy: Any) -> list[Any]:
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


@pytest.mark.parametrize("kind", [standard, adaptive])
async def test_open_circuit_never_reaches_the_strategy(kind):
    """Nothing was sent, so nothing is retried or measured."""
    strategy = kind()
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    inside = CircuitBreakerClient.new_decorator(breaker)
    with capture_logs() as logs:
        async with session([], strategy, inside) as client:
            for _ in range(2):
                with pytest.raises(FailFastError):
                    await client.get(URL)
                await asyncio.sleep(1.0)

    assert [(RetryStopReason.NO_RETRY, None)] * 2 == [
        (log.stop_reason, log.retry_error) for log in logs
    ]
    if kind is adaptive:
        assert 0.0 == strategy.limiter_for(SCOPE).measured_rate


async def test_open_circuit_is_found_in_a_group():
    """A decorator that sends from a task group raises the refusal in one."""

    @client_decorator
    async def in_a_group(delegate, ctx, request):
        async with asyncio.TaskGroup() as tasks:
            sent = tasks.create_task(delegate.execute(ctx, request))
        return sent.result()

    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    inside = CircuitBreakerClient.new_decorator(breaker)
    strategy = Plain()
    async with session([], strategy, inside, in_a_group) as client:
        with pytest.raises(ExceptionGroup):
            await client.get(URL)

    assert [("acquire", SCOPE)] == strategy.seen


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


async def test_retry_that_is_cancelled_before_it_is_sent_is_paid_back():
    """Callers who give up must not use up the retries of all others."""
    strategy = standard()
    for _ in range(40):
        async with session([503], strategy) as client:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.25):
                    await client.get(URL)

    assert 500 == available(strategy)


async def test_retry_that_was_sent_stays_paid():
    """Also where the caller gives up on it."""
    strategy = standard()
    async with session([503, lambda *_: asyncio.sleep(9)], strategy) as client:
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await client.get(URL)

    assert 486 == available(strategy)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_attempt_that_the_deadline_cut_is_no_question(method):
    """The strategy has nothing to say about the end of time, safe to retry or not."""
    strategy = Plain()
    classifiers = (*smithy.DEFAULT_CLASSIFIERS, smithy.only_idempotent)
    silence = [lambda *_: asyncio.sleep(9)]
    async with session(
        silence, strategy, classifiers=classifiers, timeout=1.0
    ) as client:
        with pytest.raises(ResponseTimeoutError, match="^the deadline passed"):
            await client.request(method, URL)

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


async def test_retry_error_is_raised_whatever_the_reason():
    """A strategy of one's own need not say why it refused what could be retried."""

    class Choosy(Plain):
        max_attempts = None

        def refresh_retry_token_for_retry(self, **_):
            raise smithy.RetryError("no")

    async with session([503], Choosy(), raise_retry_error=True) as client:
        with pytest.raises(smithy.RetryError, match="no"):
            await client.get(URL)


async def test_retry_error_that_is_raised_twice_is_about_the_call_at_hand():
    """One exception object may serve for all calls."""
    shared = smithy.RetryError("no")

    class Thrifty(Plain):
        def refresh_retry_token_for_retry(self, **_):
            raise shared

    for status in (500, 502):
        async with session([status], Thrifty(), raise_retry_error=True) as client:
            with pytest.raises(smithy.RetryError) as caught:
                await client.get(URL)

        assert status == caught.value.__cause__.status


async def test_retry_error_keeps_the_cause_that_its_strategy_gave_it():
    """It may know better what it is about."""
    cause = KeyError("quota")

    class Explaining(Plain):
        def refresh_retry_token_for_retry(self, **_):
            raise smithy.RetryError("no") from cause

    async with session([503], Explaining(), raise_retry_error=True) as client:
        with pytest.raises(smithy.RetryError) as caught:
            await client.get(URL)

    assert cause is caught.value.__cause__


async def test_refusal_that_cannot_be_written_on_ends_the_call_all_the_same():
    """An exception of somebody's own, frozen and with a hint that breaks."""

    class StubbornError(smithy.RetryError):
        def __init__(self):
            pass

        @property
        def retry_after(self):
            raise KeyError

        def __setattr__(self, name, value):
            raise AttributeError(name)

    class Stubborn(Plain):
        def refresh_retry_token_for_retry(self, **_):
            raise StubbornError

    _, log = await status_and_log(session([503], Stubborn()))
    async with session([503], Stubborn(), raise_retry_error=True) as client:
        with pytest.raises(StubbornError):
            await client.get(URL)

    assert RetryStopReason.NO_RETRY == log.stop_reason


async def test_refusal_that_is_the_failure_itself_makes_no_circle():
    """A strategy may raise what it was given."""

    class Echo(Plain):
        def refresh_retry_token_for_retry(self, *, token_to_renew, error):
            raise error.__cause__

    class Busy(smithy.RetryError):
        is_retry_safe = True

    busy = Busy()
    async with session([busy], Echo(), raise_retry_error=True) as client:
        with pytest.raises(Busy):
            await client.get(URL)

    assert busy.__cause__ is None


async def test_refusal_in_the_log_keeps_nothing_of_the_call_alive():
    """Its traceback would hold the body and the response."""
    _, log = await status_and_log(session([404], standard()))
    refused, _ = log.retry_error, None

    assert refused.__traceback__ is None
    assert getattr(refused.__context__, "__traceback__", None) is None


async def test_refusal_of_one_pass_is_not_that_of_the_next():
    """A decorator outside may send a request twice; the log tells of the last pass."""

    @client_decorator
    async def twice(delegate, ctx, request):
        (await delegate.execute(ctx, request)).close()
        return await delegate.execute(ctx, request)

    builder = SessionBuilder().decorator(ScriptedTransport([404, 200]))
    builder.decorator(RetryingClient.new_decorator(standard())).decorator(twice)
    status, log = await status_and_log(builder.build())

    assert (200, None, None) == (status, log.stop_reason, log.retry_error)


async def test_second_pass_that_never_begins_says_so():
    """Its initial wait follows the last attempt of the first pass."""

    @client_decorator
    async def twice(delegate, ctx, request):
        (await delegate.execute(ctx, request)).close()
        return await delegate.execute(ctx, request)

    builder = SessionBuilder().decorator(ScriptedTransport([200]))
    builder.decorator(RetryingClient.new_decorator(Plain(1.5))).decorator(twice)
    with capture_logs() as logs:
        async with builder.build() as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2.0):
                    await client.get(URL)

    assert RetryStopReason.CANCELLED == logs[0].stop_reason
    assert (1.5, 0.5) == (logs[0].delay, logs[0].children[0].delay)


async def test_retry_error_is_not_raised_for_what_was_never_worth_a_retry():
    """A 404 stays a response."""
    status, log = await status_and_log(
        session([404], standard(), raise_retry_error=True)
    )

    assert 404 == status
    assert isinstance(log.retry_error, smithy.RetryError)


async def test_long_poll_slows_down_when_the_quota_is_empty():
    """The caller, who will ask again at once, waits the delay of the lost retry."""
    await asyncio.sleep(1.0)
    quota = smithy.StandardRetryQuota(0)
    strategy = standard(retry_quota=quota, long_polling=True)
    status, log = await status_and_log(session([503], strategy))

    assert (503, 1.5) == (status, now())
    assert (0.5, "backoff") == (log.children[0].delay, log.children[0].delay_source)
    assert RetryStopReason.LIMITER == log.stop_reason


async def test_long_poll_does_not_wait_longer_than_the_deadline():
    """Nor for anything but the quota."""
    quota = smithy.StandardRetryQuota(0)
    strategy = standard(retry_quota=quota, long_polling=True)
    throttled, _ = await status_and_log(session([THROTTLED], strategy, timeout=2.0))
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


async def test_rate_limiter_that_would_grant_a_retry_too_late_ends_the_call_at_once():
    """With the response, which would be given up for an attempt that cannot be made."""
    strategy = adaptive()
    status, log = await status_and_log(session([THROTTLED], strategy, timeout=1.5))

    assert (429, 0.0, 500) == (status, now(), available(strategy))
    assert RetryStopReason.DEADLINE == log.stop_reason


async def test_rate_limiter_that_others_were_faster_at_may_end_the_call_late():
    """What was expected to be granted in time went to somebody else."""
    strategy = adaptive()
    limiter = strategy.limiter_for(SCOPE)

    async def overtake() -> None:
        await asyncio.sleep(1.75)
        await limiter.acquire(0.75)

    with capture_logs() as logs:
        async with (
            session([THROTTLED], strategy, timeout=2.25) as client,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(overtake())
            with pytest.raises(ResponseTimeoutError):
                await client.get(URL)

    assert RetryStopReason.DEADLINE == logs[0].stop_reason
    assert "rate_limit" == logs[0].children[0].delay_source


async def test_hint_of_a_classifier_is_obeyed_in_full():
    """Like one of the headers; no longer than a call may take."""

    def patience(failure, previous):
        return smithy.RetryAction.retry(retry_after=30.0)

    classifiers = (*smithy.DEFAULT_CLASSIFIERS, patience)
    client = session([503, 200], standard(), classifiers=classifiers)
    _, log = await status_and_log(client)

    assert (30.0, "retry_after") == (
        log.children[0].delay,
        log.children[0].delay_source,
    )


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


@pytest.mark.parametrize("fail_fast", [False, True])
async def test_limiter_grants_each_attempt_once(fail_fast):
    """Failing fast it is asked when a retry is decided, otherwise after the backoff."""
    granted = []

    class Counting(smithy.ClientRateLimiter):
        def try_acquire(self, amount: float = 1.0) -> float:
            wait = super().try_acquire(amount)
            if not wait:
                granted.append(now())
            return wait

    strategy = adaptive(rate_limiter=Counting(), fail_fast=fail_fast)
    status, _ = await status_and_log(session([503, 200], strategy))

    assert (200, [0.0, 0.0 if fail_fast else 0.5]) == (status, granted)


async def test_failing_fast_asks_before_an_initial_delay():
    """A delay is no leave."""
    strategy = smithy.AdaptiveRetryStrategy(
        backoff_strategy=Slow(), max_attempts=1, fail_fast=True
    )
    limiter = strategy.limiter_for(SCOPE)
    limiter.update(throttled=True)
    async with session([], strategy) as client:
        with pytest.raises(smithy.CapacityNotAvailableError):
            await client.get(URL)

    assert 0.0 == now()


@pytest.mark.parametrize("answer", [200, 404, lambda *_: asyncio.sleep(9)])
async def test_every_attempt_is_measured(answer):
    """Also the one that nobody retries and the one that the deadline cuts."""
    strategy = adaptive()
    limiter = strategy.limiter_for(SCOPE)
    limiter.try_acquire()
    await asyncio.sleep(1.0)
    async with session([answer], strategy, timeout=1.0) as client:
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


async def test_error_code_is_not_waited_for_longer_than_the_attempt_has():
    """A body that stalls is no reason to be late."""

    def stalling(ctx, request):
        response = new_response(request, 503, headers={"Content-Type": "text/xml"})
        response.content = aiohttp.StreamReader(
            Connected(asyncio.get_running_loop()),
            2**16,
            loop=asyncio.get_running_loop(),
        )
        return response

    client = session([stalling, 200], standard(), attempt_timeout=0.25)
    _, log = await status_and_log(client)

    assert 0.75 == log.duration


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

    class Cut(aiohttp.StreamReader):
        def __init__(self):
            super().__init__(None, 1, loop=asyncio.get_running_loop())
            self.set_exception(aiohttp.ClientPayloadError("cut"))

    def cut(ctx, request):
        response = new_response(request, 200)
        response.content = Cut()
        return response

    body = b'{"__type": "Throttling"}'
    throttled = (400, {"Content-Type": "application/json"}, body)
    strategy = standard(max_attempts=4)
    answers = [cut, throttled, (200, {}, b"fine")]
    client = session(answers, strategy, buffer_response=True)
    status, log = await status_and_log(client)

    assert (200, 3) == (status, log.total_attempts)
    assert [0.5, 2.0, None] == [child.delay for child in log.children]


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


def test_description_shows_the_settings_for_smithy_strategies():
    """They have an effect here, and nowhere else."""
    decorator = RetryingClient.new_decorator(
        Plain(),
        classifiers=(smithy.by_status, smithy.only_idempotent),
        raise_retry_error=True,
    )
    shown = "classifiers=(by_status, only_idempotent), raise_retry_error=True)"

    assert decorator(None).describe().endswith(shown)
