"""Both lanes where parts of a chain, or those around it, do what few of them do."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from types import SimpleNamespace
from unittest import mock

import aiohttp
import pytest
from fault_server import Fault, FaultServer, answer, response
from lanes import LANES
from story_chains import FAILSAFE
from story_log import told_log
from story_text import differences

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    FailFastError,
    HttpRequest,
    LoggingClient,
    RequestLog,
    RetryingClient,
    SessionBuilder,
    capture_logs,
    client_decorator,
    decorate,
    new_response,
    undecorate,
    unwrap,
)

FINE = answer(200, b"fine")
BUSY = answer(503, b"busy")
STREAMED = Fault(send=(response(200, b"x" * 1000)[:-500], 0.02, b"x" * 500))
UNSENT = "http://127.0.0.1:1/"


def decorators():
    return (
        CircuitBreakerClient.new_per_host_decorator(),
        RetryingClient.new_decorator(FAILSAFE, max_total_attempts=3),
    )


async def warmed(lane, url, *outside, inside=None):
    """Return a session whose next call takes the short lane, where there is one."""
    builder = SessionBuilder(url)
    for decorator in (*(decorators() if inside is None else inside), *outside):
        builder.decorator(decorator)
    with LANES[lane]():
        session = builder.build()
    # The first call to a server makes its circuit breaker.
    await (await session.get("/")).read()
    return session


class Unsure:
    """A logger that cannot say whether a level is on."""

    def isEnabledFor(self, level):  # noqa: N802
        raise LookupError(level)

    def log(self, level, message, **options):
        raise AssertionError(message)


@pytest.mark.parametrize("lane", LANES)
async def test_logger_that_raises_changes_nothing_for_a_call(lane):
    """It is asked before a call that may take the short lane, and may raise there."""
    logging = LoggingClient.new_decorator(Unsure())
    async with (
        FaultServer(then=FINE) as server,
        await warmed(lane, server.url, logging) as session,
    ):
        response = await session.get("/")

    assert 200 == response.status


@pytest.mark.parametrize("lane", LANES)
async def test_call_outlives_its_chain(lane):
    """It is retried to its end, though the session is undecorated meanwhile."""
    faults = [FINE, Fault(send=(0.01, response(503, b"busy")))]
    async with FaultServer(faults, then=FINE) as server:
        with LANES[lane]():
            session = decorate(aiohttp.ClientSession(server.url), *decorators())
        async with session:
            await session.get("/")
            call = asyncio.ensure_future(session._request("GET", "/"))
            await asyncio.sleep(0)
            undecorate(session)
            gc.collect()
            answered = await call

    assert 200 == answered.status
    assert 2 == RequestLog.of(answered).total_attempts


@client_decorator
async def sent_twice_at_once(delegate, ctx, request):
    """Hedge the request of a call that is not the first."""
    tasks = [asyncio.ensure_future(delegate.execute(ctx, request)) for _ in range(2)]
    first, _ = await asyncio.gather(*tasks)
    return first


@client_decorator
async def sent_twice(delegate, ctx, request):
    """Send two requests in turn, and read the first answer last."""
    first = await delegate.execute(ctx, request)
    second = await delegate.execute(ctx, request)
    await second.read()
    await first.read()
    return second


@client_decorator
async def turned_to_another_server(delegate, ctx, request):
    """Ask the server of the caller where the circuit of another one is open."""
    with contextlib.suppress(FailFastError):
        return await delegate.execute(ctx, request.replace(url=UNSENT))
    return await delegate.execute(ctx, request)


def only_for(path, decorator):
    """Leave all other requests alone."""

    def decorate_some(delegate):
        decorated = decorator(delegate)

        @client_decorator
        async def choose(delegate, ctx, request):
            chosen = decorated if request.target == path else delegate
            return await chosen.execute(ctx, request)

        return choose(delegate)

    return decorate_some


SECOND_PASSES = {
    "at once": (sent_twice_at_once, [FINE, FINE]),
    "at once, the first fails": (sent_twice_at_once, [BUSY, FINE]),
    "at once, both fail": (sent_twice_at_once, [BUSY, BUSY]),
    "in turn": (sent_twice, [FINE, FINE]),
    "in turn, streamed": (sent_twice, [STREAMED, STREAMED]),
    "after a refusal": (turned_to_another_server, [FINE]),
}


@pytest.mark.parametrize("inside", [1, 2])
@pytest.mark.parametrize("passes", SECOND_PASSES)
async def test_second_pass_has_an_attempt_of_its_own(passes, inside):
    """A decorator may send more requests; no log takes the outcome of another."""
    decorator, faults = SECOND_PASSES[passes]
    shown = []
    for lane in LANES:
        async with FaultServer([FINE, *faults], then=FINE) as server:
            outside = only_for("/twice", decorator)
            chosen = decorators()[:inside]
            async with await warmed(lane, server.url, outside, inside=chosen) as made:
                client = unwrap(made, CircuitBreakerClient)
                refusing = client._circuit_breakers.of(HttpRequest("GET", UNSENT))
                refusing.enter_state(CircuitState.OPEN)
                with capture_logs() as logs:
                    await (await made.get("/twice")).read()
        if passes == "at once, both fail":
            # Which of the two is retried first is chance.
            statuses = [child.response_status for child in logs[0].children]
            shown.append(sorted(statuses))
        else:
            shown.append(told_log(logs[0]))

    assert [] == differences(*shown)


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("lane", LANES)
async def test_answer_of_a_decorator_stays_that_of_the_call(lane, looks):
    """A request that it left running is an attempt of the call, and not its answer."""
    running = []

    @client_decorator
    async def answer_at_once(delegate, ctx, request):
        running.append(asyncio.ensure_future(delegate.execute(ctx, request)))
        await asyncio.sleep(0.001)
        return new_response(request, 203, body=b"stale")

    fresh = Fault(send=(0.02, response(200, b"fresh")))
    async with FaultServer([FINE, fresh]) as server:
        outside = only_for("/stale", answer_at_once)
        async with await warmed(lane, server.url, outside) as session:
            log = RequestLog.of(await session.get("/stale"))
            before = [child.response_status for child in log.children if looks]
            await (await running[0]).read()

    assert [None] * looks == before
    assert 203 == log.response_status
    assert [200] == [child.response_status for child in log.children]


class Body(dict):
    """JSON that can be referred to weakly."""


@client_decorator
async def watched(delegate, ctx, request):
    """Take the call as it is."""
    return await delegate.execute(ctx, request)


@pytest.mark.parametrize("outside", [[], [watched]])
@pytest.mark.parametrize("faults", [[], [BUSY]])
@pytest.mark.parametrize("lane", LANES)
async def test_body_does_not_live_on_in_response_or_log(lane, faults, outside):
    """Bodies are large, and responses and logs are kept."""
    async with (
        FaultServer([FINE, *faults], then=FINE) as server,
        await warmed(lane, server.url, *outside) as session,
    ):
        body = Body(a=1)
        gone = weakref.ref(body)
        with capture_logs() as logs:
            captured = await session.put("/", json=body)
        response = await session.put("/", json=body)
        del body
        gc.collect()

    assert None is gone()
    assert 200 == captured.status
    assert [8, 8] == [logs[0].request_length, RequestLog.of(response).request_length]


class Answer(SimpleNamespace):
    """A response of a mock, which has all that a real one has, or nearly."""


ODD = {
    "a status of text": {"status": "200"},
    "no status": {"status": None},
    "no request": {"request_info": None},
    "a mock": mock.MagicMock(spec=aiohttp.ClientResponse),
}


@pytest.mark.parametrize("odd", ODD)
async def test_odd_answers_of_mocks_end_the_call_alike(odd):
    """The log of the call ends, and the error leads to it."""
    answered = ODD[odd]
    if isinstance(answered, dict):
        usual = {"status": 200, "reason": "OK", "headers": {}, "history": ()}
        rest = {"connection": None, "content": None, "close": int}
        answered = Answer(**{**usual, **rest, **answered})
    ended = []
    for lane in LANES:
        async with (
            FaultServer(then=FINE) as server,
            await warmed(lane, server.url) as session,
        ):
            patch = mock.patch.object(aiohttp.ClientSession, "_request")
            with capture_logs() as logs, patch as request:
                request.return_value = answered
                (outcome,) = await asyncio.gather(
                    session.get("/"), return_exceptions=True
                )
        told = repr(outcome), RequestLog.of(outcome, None) in logs, logs[0]._is_settled
        ended.append((*told, told_log(logs[0])))

    assert [] == differences(*ended)


async def test_log_of_an_attempt_is_complete_at_once():
    """A wait for it does not last until the end of a decorator's work."""

    @client_decorator
    async def wait_for_the_log(delegate, ctx, request):
        sending = asyncio.ensure_future(delegate.execute(ctx, request))
        await asyncio.sleep(0.001)
        (attempt,) = ctx.log.children
        waiting = asyncio.ensure_future(attempt.when_complete())
        await sending
        async with asyncio.timeout(1.0):
            await waiting
        return await sending

    slow = Fault(send=(0.02, response(200, b"fine")))
    shown = []
    for lane in LANES:
        async with FaultServer([FINE, slow]) as server:
            outside = only_for("/waits", wait_for_the_log)
            async with await warmed(lane, server.url, outside) as session:
                shown.append((await session.get("/waits")).status)

    assert [200, 200] == shown


class Alarm(BaseException):
    """An error that a handler of signals may raise anywhere."""


@pytest.mark.parametrize("fault", [answer(200, b"fine"), STREAMED])
@pytest.mark.parametrize("error", [LookupError, Alarm])
async def test_clock_that_raises_leaves_the_attempt_its_answer(error, fault):
    """The call failed, and its one attempt did not."""
    shown = []
    for lane in LANES:
        clock = mock.Mock(return_value=1.0)
        breaking = CircuitBreakerClient.new_decorator(CircuitBreaker("c", clock=clock))
        chosen = [breaking, decorators()[1]]
        async with (
            FaultServer([FINE, fault]) as server,
            await warmed(lane, server.url, inside=chosen) as session,
        ):
            clock.side_effect = error
            with capture_logs() as logs, pytest.raises(error) as raised:
                await session.get("/")
        shown.append((told_log(logs[0]), RequestLog.of(raised.value) is logs[0]))

    assert [] == differences(*shown)
