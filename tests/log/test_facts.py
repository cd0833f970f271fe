"""Facts of a log: success, and what decorators outside of the retries leave in it."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from calls import begin, begin_body, end, end_body
from chains import (
    NOW,
    SAFELY,
    Always,
    Answering,
    after,
    chain,
    log_of,
    log_of_cancelled,
    retrying,
    session,
    silence,
    twice,
)
from races import hedging

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    DecoratingClient,
    RequestLog,
    RetryBudget,
    RetryDecision,
    RetryingClient,
    RetryingRpcClient,
    RetryStopReason,
    RetryStrategy,
    RetryStrategyWithContent,
    capture_logs,
    client_decorator,
    new_response,
    rpc,
)
from aioretry_smithy.smithy import CapacityNotAvailableError, StandardRetryStrategy
from aioretry_smithy.testing import ScriptedTransport

ALWAYS = retrying(Always(), max_total_attempts=2)


ERROR_INSIDE = (200, {"error": "busy"})


def successes(log):
    """Return whether the call is a success, and each of its attempts."""
    return log.is_success, [attempt.is_success for attempt in log.children]


@client_decorator
async def fall_back(delegate, ctx, request):
    """Answer in place of the server, whatever comes of asking it."""
    with suppress(aiohttp.ClientError):
        await delegate.execute(ctx, request)
    return new_response(request, 203)


class OnError(RetryStrategyWithContent):
    """Retries an answer whose body says that there was an error."""

    def should_retry(self, ctx, cause, content):
        return NOW if content and b"error" in content else RetryDecision.no_retry()


@pytest.mark.parametrize(
    ("outcome", "is_success"),
    [(200, True), (304, True), (399, True), (400, False), (503, False)],
)
async def test_status_below_400_is_a_success(outcome, is_success):
    """Where nothing retries, nothing else counts."""
    assert is_success is (await log_of(session([outcome]))).is_success


async def test_failure_is_none():
    """An exception, also of the body, after which the status counts no more."""
    failed, cut = begin(), begin()
    end(failed, TimeoutError())
    begin_body(cut)

    assert failed.log.is_success is False
    assert cut.log.is_success is True
    end_body(cut, cause=aiohttp.ClientPayloadError())
    assert cut.log.is_success is False


@pytest.mark.parametrize(
    "decorators", [(), (retrying(SAFELY),)], ids=["plain", "retry"]
)
async def test_answer_that_the_caller_turns_down_is_none(decorators):
    """The function for ``raise_for_status`` raises whatever the status."""

    async def refuse(response):
        raise ValueError("not what we asked for")

    log = await log_of(session([200], *decorators), raise_for_status=refuse)

    assert "ValueError" == log.response_cause_type
    assert log.is_success is False


async def test_what_is_under_way_is_none_yet():
    """Neither a call without an outcome, nor its attempt."""
    ctx = begin()
    attempt = ctx.derive(ctx.request)

    assert (False, [False]) == successes(ctx.log)
    assert attempt.log.to_dict()["is_success"] is False


async def test_cancelled_call_is_none():
    """Nobody knows what would have become of it."""
    log = await log_of_cancelled(session([silence]), after=1.0)

    assert log.is_success is False


async def test_attempt_that_was_retried_is_none():
    """Whatever its status: its answer was thrown away."""
    decorator = retrying(OnError(), max_total_attempts=3)
    log = await log_of(session([ERROR_INSIDE, (200, {"id": 7})], decorator))

    assert (True, [False, True]) == successes(log)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"max_total_attempts": 1}, "max_total_attempts"),
        ({"strategy": Always(Backoff.fixed(9.0)), "timeout": 5.0}, "deadline"),
        ({"strategy": Always(NOW.with_max_attempts(1))}, "backoff_exhausted"),
        ({"limiter": RetryBudget(capacity=1.0, brake_after=1)}, "limiter"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_answer_that_a_strategy_wanted_to_retry_is_none(settings, reason):
    """Whatever came in the way of another attempt."""
    timeout = settings.pop("timeout", None)
    decorator = retrying(settings.pop("strategy", Always()), **settings)
    log = await log_of(session([200] * 9, decorator, timeout=timeout))

    assert (reason, 200) == (log.stop_reason, log.response_status)
    assert log.is_success is False
    assert not any(attempt.is_success for attempt in log.children)


async def test_server_that_asks_for_too_long_a_wait_with_a_200():
    """It is a reason like the others."""
    answers = [(200, {"Retry-After": "120"}, b"")]
    log = await log_of(session(answers, retrying(Always(), max_retry_after=60.0)))

    assert "retry_after_too_long" == log.stop_reason
    assert (False, [False]) == successes(log)


async def test_body_that_cannot_be_sent_again_with_a_200():
    """Another attempt was wanted, and there was nothing to send."""

    async def body():
        yield b"one"

    log = await log_of(session([200], ALWAYS), method="POST", data=body())

    assert "body_not_replayable" == log.stop_reason
    assert (False, [False]) == successes(log)


async def test_smithy_strategy_takes_each_success():
    """It is not asked for another attempt after one."""
    log = await log_of(session([500, 200], retrying(StandardRetryStrategy())))

    assert (True, [False, True]) == successes(log)


async def test_fallback_around_the_retries_makes_a_success():
    """The outcome is another one; why the retries stopped stays."""
    log = await log_of(session([200, 200], ALWAYS, fall_back))

    assert (True, [False, False]) == successes(log)
    assert ("max_total_attempts", 203) == (log.stop_reason, log.response_status)


async def test_fallback_of_an_open_circuit_around_the_retries_makes_a_success():
    """It answers in place of the whole call."""
    breaker = CircuitBreaker("orders")
    breaker.enter_state(CircuitState.FORCED_OPEN)
    decorator = CircuitBreakerClient.new_decorator(breaker)
    log = await log_of(session([], decorator, retrying(SAFELY), fall_back))

    assert (True, [False]) == successes(log)
    assert "refused" == log.stop_reason


async def test_second_pass_through_the_retries_counts():
    """A decorator outside asked again, and got what nobody wanted to retry."""
    strategy = OnError()

    @client_decorator
    async def insist(delegate, ctx, request):
        await delegate.execute(ctx, request)
        return await delegate.execute(ctx, request)

    decorator = retrying(strategy, max_total_attempts=1)
    log = await log_of(session([ERROR_INSIDE, 200], decorator, insist))

    assert (True, [False, True]) == successes(log)
    assert log.stop_reason is None


async def test_request_that_lost_a_race_is_no_failure():
    """It was given up for a better one; its call is a success."""
    answers = [after(9.0, 200), after(0.25, 201)]
    log = await log_of(session(answers, hedging(0.5)))

    assert log.is_success
    assert all(each.is_success for each in log.children if each.superseded)


async def test_call_that_stopped_before_its_first_attempt_is_none():
    """All that are under way share an outcome, which nothing marks."""

    class HeldUp(StandardRetryStrategy):
        async def acquire_initial_retry_token(self, *, token_scope=None):
            raise CapacityNotAvailableError(1.0)

    waiting = begin()
    log = await log_of(session([], retrying(HeldUp())))
    end(waiting, 200)

    assert waiting.log.is_success
    assert not log.is_success


async def test_function_whose_result_was_wanted_again_is_none():
    """The function around it was content with that."""
    twice = RetryingRpcClient.new_decorator(Always(), max_total_attempts=2)

    @rpc(twice)
    async def fetch():
        return "stale"

    @rpc(RetryingRpcClient.new_decorator(Answering(None)))
    async def around():
        return await fetch()

    with capture_logs() as logs:
        assert "stale" == await around()
    (outer,) = logs
    (inner,) = outer.children[0].calls

    assert (True, [True]) == successes(outer)
    assert (False, [False, False]) == successes(inner)


def builder(*answers, **settings):
    return chain(answers, retrying(1.0, **settings), base_url="http://example.com")


async def test_refusal_keeps_the_response():
    """The log keeps the status that ``raise_for_status`` turned down."""
    async with builder((418, b"tea")).build() as session:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await session.get("/", raise_for_status=True)
    log = RequestLog.of(caught.value)

    assert (418, 3, caught.value) == (
        log.response_status,
        log.response_length,
        log.response_cause,
    )
    assert log.children[0].response_cause is None


async def test_decorator_outside_may_pass_twice():
    """Attempt numbers go on over the call, and the last pass is what counts."""
    calls = builder(503, 404, 503, 200).decorator(twice)
    async with calls.build() as session, session.get("/") as response:
        log = RequestLog.of(response)

    assert [1, 2, 3, 4] == [child.attempt for child in log.children]
    assert (200, None) == (log.response_status, log.stop_reason)


async def test_decorator_outside_may_answer_itself():
    """The root shows what the caller got, the child what the server said."""

    @client_decorator
    async def mend(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        response.release()
        return new_response(request, 203, body=b"from the cache")

    calls = builder(404).decorator(mend)
    async with calls.build() as session, session.get("/") as response:
        log = RequestLog.of(response)

    assert (203, 404) == (log.response_status, log.children[0].response_status)
    assert 14 == log.response_length
    assert RetryStopReason.NO_RETRY == log.stop_reason


@client_decorator
async def race(delegate, ctx, request):
    """Send twice at once, and leave the slower one behind, cancelled."""
    tasks = [
        asyncio.ensure_future(delegate.execute(ctx, request)),
        asyncio.ensure_future(delegate.execute(ctx, request)),
    ]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return done.pop().result()


class Refreshing(DecoratingClient):
    """Answers from a cache, and asks the server without waiting for it."""

    async def execute(self, ctx, request):
        self.task = asyncio.ensure_future(self.delegate.execute(ctx, request))
        await asyncio.sleep(0.5)
        return new_response(request, 203)


async def settled(*decorators):
    """Return what a log showed when its call was over, and the log a while later."""
    async with session(*decorators) as client:
        log = RequestLog.of(await client.get("http://h/"))
        shown = [(each.response_status, each.duration) for each in (log, *log.children)]
        await asyncio.sleep(60.0)
    return shown, log


@pytest.mark.parametrize("attempts", [0, 2])
async def test_cancelled_loser_of_a_race_changes_no_log(attempts):
    """Neither that of the call nor that of the attempt that the race was in."""
    answers = [503, 500, 200, 500] if attempts else [200, 500]
    times = (1.0, 9.0, 1.0, 9.0)
    scripted = [after(*each) for each in zip(times, answers, strict=False)]
    retrying = RetryingClient.new_decorator(RetryStrategy.failsafe(Backoff.fixed(1.0)))
    outside = [retrying] if attempts else []
    shown, log = await settled(ScriptedTransport(scripted), race, *outside)

    assert attempts == len(log.children)
    statuses = [(200, 3.0), (503, 1.0), (200, 1.0)] if attempts else [(200, 1.0)]
    assert statuses == shown
    assert shown == [
        (each.response_status, each.duration) for each in (log, *log.children)
    ]
    assert {None} == {each.response_cause for each in (log, *log.children)}


@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize("retries", [False, True])
async def test_pass_that_outlives_its_call_does_not_change_the_answer(
    retries, is_cancelled
):
    """Its attempts are shown as they ended; what the caller got stays."""
    clients = []

    def refreshing(delegate):
        clients.append(Refreshing(delegate))
        return clients[0]

    async def answer(ctx, request):
        await asyncio.sleep(1.0)
        if is_cancelled:
            clients[0].task.cancel()
            await asyncio.sleep(1.0)
        return 500

    never = RetryingClient.new_decorator(RetryStrategy.never())
    inside = [never] if retries else []
    _, log = await settled(ScriptedTransport([answer]), *inside, refreshing)

    assert (203, None, 0.5) == (log.response_status, log.response_cause, log.duration)
    assert log.stop_reason is None
    assert [1.0] * retries == [child.duration for child in log.children]
    status = None if is_cancelled else 500
    assert [status] * retries == [child.response_status for child in log.children]


async def test_notes_are_on_a_refused_response():
    """``raise_for_status`` raises for the caller what attempts led up to."""
    async with builder(503, 503, max_total_attempts=2).build() as session:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await session.get("/", raise_for_status=True)
    log = RequestLog.of(caught.value)

    assert 2 == len(caught.value.__notes__)
    assert (503, caught.value) == (log.response_status, log.response_cause)
    assert [None, None] == [child.response_cause for child in log.children]
