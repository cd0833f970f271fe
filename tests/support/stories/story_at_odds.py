"""Calls in which parts of a chain, or those around it, do what few of them do."""

import asyncio
import contextlib
from types import SimpleNamespace
from unittest import mock

import aiohttp
from fault_server import Fault, FaultServer, answer, response
from story_chains import FAILSAFE
from story_text import told_error, told_log

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    FailFastError,
    HttpRequest,
    RequestLog,
    RetryingClient,
    SessionBuilder,
    capture_logs,
    client_decorator,
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


async def warmed(url, *outside, inside=None):
    """Return a session that has made a call."""
    builder = SessionBuilder(url)
    for decorator in (*(decorators() if inside is None else inside), *outside):
        builder.decorator(decorator)
    session = builder.build()
    # The first call to a server makes its circuit breaker.
    await (await session.get("/")).read()
    return session


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
"""By name: a decorator that sends more than one request, and their answers."""


async def second_pass(passes, inside):
    """Tell the log of a call for which a decorator sent more requests."""
    decorator, faults = SECOND_PASSES[passes]
    async with FaultServer([FINE, *faults], then=FINE) as server:
        outside = only_for("/twice", decorator)
        chosen = decorators()[:inside]
        async with await warmed(server.url, outside, inside=chosen) as made:
            client = unwrap(made, CircuitBreakerClient)
            refusing = client._circuit_breakers.of(HttpRequest("GET", UNSENT))
            refusing.enter_state(CircuitState.OPEN)
            with capture_logs() as logs:
                await (await made.get("/twice")).read()
    if passes == "at once, both fail":
        # Which of the two is retried first is chance.
        return {"statuses": sorted(each.response_status for each in logs[0].children)}
    return {"log": told_log(logs[0])}


class Answer(SimpleNamespace):
    """A response of a mock, which has all that a real one has, or nearly."""


ODD = {
    "a status of text": {"status": "200"},
    "no status": {"status": None},
    "no request": {"request_info": None},
    "a mock": mock.MagicMock(spec=aiohttp.ClientResponse),
}
"""By name: what a mock answers in place of aiohttp."""


async def odd_answer(odd):
    """Tell how a call ends that is answered by a mock."""
    answered = ODD[odd]
    if isinstance(answered, dict):
        usual = {"status": 200, "reason": "OK", "headers": {}, "history": ()}
        rest = {"connection": None, "content": None, "close": int}
        answered = Answer(**{**usual, **rest, **answered})
    async with FaultServer(then=FINE) as server, await warmed(server.url) as session:
        patch = mock.patch.object(aiohttp.ClientSession, "_request")
        with capture_logs() as logs, patch as request:
            request.return_value = answered
            (outcome,) = await asyncio.gather(session.get("/"), return_exceptions=True)
    is_error = isinstance(outcome, BaseException)
    return {
        "outcome": told_error(outcome) if is_error else type(outcome),
        "has a log": RequestLog.of(outcome, None) in logs,
        "log": told_log(logs[0]),
    }


class Alarm(BaseException):
    """An error that a handler of signals may raise anywhere."""


CLOCKS = {
    f"{error.__name__}, {name}": (error, fault)
    for error in (LookupError, Alarm)
    for name, fault in {"whole": FINE, "streamed": STREAMED}.items()
}
"""By name: what the clock of a circuit breaker raises, and the answer before."""


async def failing_clock(name):
    """Tell the log of a call at whose end a clock raised."""
    error, fault = CLOCKS[name]
    clock = mock.Mock(return_value=1.0)
    breaking = CircuitBreakerClient.new_decorator(CircuitBreaker("c", clock=clock))
    chosen = [breaking, decorators()[1]]
    async with (
        FaultServer([FINE, fault]) as server,
        await warmed(server.url, inside=chosen) as session,
    ):
        clock.side_effect = error
        with capture_logs() as logs:
            try:
                await session.get("/")
            except error as raised:
                found = RequestLog.of(raised) is logs[0]
    return {"log": told_log(logs[0]), "has it": found}


STORIES = {
    **{
        f"{name}, through {inside}": lambda name=name, inside=inside: second_pass(
            name, inside
        )
        for name in SECOND_PASSES
        for inside in (1, 2)
    },
    **{f"answered {name}": lambda name=name: odd_answer(name) for name in ODD},
    **{
        f"clock raises {name}": lambda name=name: failing_clock(name) for name in CLOCKS
    },
}
"""By name: functions that tell the story."""
