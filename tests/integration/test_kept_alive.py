"""A call that is over keeps nothing alive, and no place under a limit."""

import asyncio
import contextlib
import gc
import weakref

import aiohttp
import pytest
from chains import NOW, connected, pass_on, retrying
from fault_server import End, Fault, FaultServer, answer, cut, response
from until import nothing_to_collect, until

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    EndpointGroup,
    LoggingClient,
    LoggingRpcClient,
    RequestLog,
    RetryStrategy,
    RetryStrategyWithContent,
    capture_logs,
    client_decorator,
    new_response,
    request_options,
    rpc,
)
from aioretry_smithy.smithy import StandardRetryStrategy


class Content(RetryStrategyWithContent):
    async def should_retry(self, ctx, cause, content):
        return NOW if cause is not None else None


STRATEGIES = {
    "plain": RetryStrategy.failsafe(NOW),
    "content": Content(),
    "smithy": StandardRetryStrategy(max_attempts=3),
}
ENDS = {"answer": [cut(end=End.RESET)], "exception": [cut(end=End.RESET)] * 3}
CUT_BODY = Fault(send=(response(200, b"x" * 1000)[:500],), end=End.CLOSE)


def build(url, strategy, *inside, **options):
    return connected(
        url,
        *inside,
        retrying(strategy, max_total_attempts=3),
        LoggingClient.new_decorator(),
        connector=aiohttp.TCPConnector(limit=1),
        **options,
    )


async def ask(session, path="/", **options):
    """Send a request, read the body, and keep nothing of either."""
    with contextlib.suppress(aiohttp.ClientError, TimeoutError):
        async with session.get(path, **options) as got:
            await got.read()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("end", ENDS)
async def test_nothing_is_left_to_collect(strategy, end):
    """All is freed after any outcome, with any strategy."""
    async with (
        FaultServer([*ENDS[end], *ENDS[end]]) as server,
        build(server.url, STRATEGIES[strategy]) as session,
    ):
        await ask(session)
        with nothing_to_collect():
            await ask(session)


async def test_body_that_failed_leaves_nothing_to_collect():
    """An attempt whose body was cut is given up with all that it had."""
    async with (
        FaultServer([CUT_BODY, answer(), CUT_BODY]) as server,
        build(server.url, STRATEGIES["content"]) as session,
    ):
        await ask(session)
        with nothing_to_collect():
            await ask(session)


async def test_cancelled_call_leaves_nothing_to_collect():
    """Neither do the tasks in which it ran."""
    async with (
        FaultServer([Fault(send=(), end=End.STALL)] * 2) as server,
        build(server.url, STRATEGIES["plain"]) as session,
    ):
        for _ in range(2):
            with nothing_to_collect():
                task = asyncio.ensure_future(ask(session))
                await asyncio.sleep(0.05)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                del task


@pytest.mark.parametrize("has_fallback", [False, True])
async def test_refused_call_leaves_nothing_to_collect(has_fallback):
    """With a fallback, which may make a call of its own, and without."""
    breaker = CircuitBreaker("shop")
    breaker.enter_state(CircuitState.FORCED_OPEN)
    async with FaultServer([]) as server, connected(server.url) as other:

        async def fallback(ctx, request):
            await ask(other)
            return new_response(request, 203)

        decorator = CircuitBreakerClient.new_decorator(
            breaker, fallback=fallback if has_fallback else None
        )
        async with build(server.url, STRATEGIES["plain"], decorator) as session:
            await ask(session)
            with nothing_to_collect():
                await ask(session)


async def test_call_inside_an_attempt_leaves_nothing_to_collect():
    """Its exception may end the call around it, too."""
    async with (
        FaultServer([cut(end=End.RESET)] * 12) as server,
        connected(server.url) as other,
    ):

        @client_decorator
        async def log_in(delegate, ctx, request):
            await other.get("/token")
            return await delegate.execute(ctx, request)

        async with build(server.url, STRATEGIES["plain"], log_in) as session:
            await ask(session)
            with nothing_to_collect():
                await ask(session)


class User:
    """What the attributes of a block may have."""


@pytest.mark.parametrize("body", [b"", b"x" * 300_000])
@pytest.mark.parametrize("where", ["block", "function"])
async def test_connection_keeps_no_attributes_of_a_block(body, where):
    """It is opened in the block, and lives on in the pool."""
    seen = []

    @client_decorator
    async def see(delegate, ctx, request):
        seen.append(type(ctx.attributes.get("user")))
        return await delegate.execute(ctx, request)

    @client_decorator
    async def see_inside(delegate, ctx, request):
        with request_options(attributes={"inner": 1}):
            return await delegate.execute(ctx, request)

    async with (
        FaultServer([answer(200, body)] * 2) as server,
        connected(server.url, see, see_inside) as session,
    ):
        function = rpc(LoggingRpcClient.new_decorator())(ask)
        user = User()
        gone = weakref.ref(user)
        with request_options(attributes={"user": user}):
            await (ask if where == "block" else function)(session)
        del user
        gc.collect()
        left = gone()
        await ask(session)

        assert None is left
        assert [User, type(None)] == seen
        assert 1 == server.connected


async def test_options_hold_for_calls_that_aiohttp_makes_meanwhile():
    """A middleware that asks for a token is part of the block around the request."""
    seen = []

    @client_decorator
    async def see(delegate, ctx, request):
        seen.append((ctx.attributes, ctx.remaining() <= 9.0))
        with request_options(attributes={"inner": 2}):
            return await delegate.execute(ctx, request)

    async with FaultServer([answer()] * 4) as server, connected(server.url, see) as it:

        async def with_token(request, handler):
            await ask(it, "/token")
            return await handler(request)

        async with connected(server.url, middlewares=[with_token]) as other:
            with request_options(attributes={"a": 1}, response_timeout=9.0):
                await ask(other)
            await ask(it)

    assert [({"a": 1}, True), ({}, False)] == seen


INSIDE = {
    "nothing": [],
    "retries": [retrying(STRATEGIES["plain"])],
    "retries and a circuit breaker": [
        CircuitBreakerClient.new_decorator(CircuitBreaker("shop")),
        retrying(STRATEGIES["plain"]),
    ],
}


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("first", [None, cut(end=End.RESET)])
async def test_context_that_is_kept_keeps_no_response(inside, first):
    """A decorator may keep contexts; of a response they have what the log shows."""
    contexts, responses = [], []

    @client_decorator
    async def keeping(delegate, ctx, request):
        contexts.append(ctx)
        return await delegate.execute(ctx, request)

    async def get(session):
        got = await session.get("/")
        responses.append(weakref.ref(got))
        await got.read()

    faults = [answer(200, b"body")] * 2
    if first is not None and inside != "nothing":
        faults.insert(0, first)
    async with FaultServer(faults) as server:
        session = connected(server.url, *INSIDE[inside], keeping)
        async with session:
            await get(session)
            gc.collect()
            gone = responses[0]()
            got = await session.get("/")
            log = RequestLog.of(got)

    assert None is gone
    assert 200 == contexts[0].log.response_status
    assert 4 == contexts[0].log.response_length
    assert contexts[0].log.is_complete
    assert (len(faults) == 2) == ("Host" in contexts[0].log.request_headers)
    assert len(faults) - 1 == contexts[0].log.total_attempts
    assert log is contexts[1].log


@pytest.mark.parametrize("end", ENDS)
async def test_log_keeps_neither_body_nor_response_nor_connection(end):
    """Logs that are kept take little memory; the next call has the one connection."""

    class Text(str):
        """Text that can be referred to weakly."""

    kept = []

    async def put(session):
        body = Text("sent")
        kept.append(weakref.ref(body))
        got = await session.put("/", data=body)
        kept.append(weakref.ref(got))
        await got.read()

    async with (
        FaultServer(ENDS[end]) as server,
        build(server.url, STRATEGIES["plain"]) as session,
    ):
        gc.collect()
        gc.disable()
        try:
            with capture_logs() as logs, contextlib.suppress(aiohttp.ClientError):
                await put(session)
            # Of a failed upload aiohttp itself leaves a task and a cycle.
            await asyncio.sleep(0.01)
            if end == "exception":
                gc.collect()
            alive = [reference() for reference in kept]
            async with asyncio.timeout(5.0):
                await ask(session)
        finally:
            gc.enable()

    assert [None] * len(kept) == alive
    first, *_ = logs[0].children
    assert isinstance(first.response_cause, aiohttp.ClientError)
    assert first.response_cause.__traceback__ is None


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"


@pytest.fixture
def limit():
    return ConcurrencyLimit.fixed(1)


@pytest.fixture(params=[(), (pass_on,)], ids=["alone", "beside a decorator"])
def limiting(limit, request):
    return *request.param, ConcurrencyLimitingClient.new_decorator(limit)


def in_flight(*places):
    """Return how many requests are under way at limits, and at endpoints of groups."""
    return [
        each.in_flight
        for place in places
        for each in getattr(place, "states", {"": place}).values()
    ]


async def test_a_response_that_is_dropped_gives_its_place_back(serve, limit, limiting):
    """When the server has hung up, at the latest; that at its endpoint, too."""
    group = EndpointGroup.of(await serve([HEAD, b"ord", None]))
    async with connected(group, *limiting) as client:
        response = await client.get("/")
        held = in_flight(limit, group)
        del response
        # Until then the connection itself has the response.
        async with asyncio.timeout(5.0):
            while any(in_flight(limit, group)):
                await asyncio.sleep(0.01)
                gc.collect()

        assert [1, 1] == held


async def test_a_session_that_is_closed_gives_the_places_of_its_responses_back(
    serve, limit, limiting
):
    """At once, though a variable still has a response that nobody has read."""
    url = await serve([HEAD, b"ord", 30.0])
    group = EndpointGroup.of(url)
    async with (
        connected(group, *limiting) as client,
        connected(url, *limiting) as other,
    ):
        response = await client.get("/")
        waiting = asyncio.create_task(other.get("/"))
        await until(lambda: limit.pending)
        held = limit.in_flight, limit.pending
        loads = in_flight(group)
        await client.close()
        loads += in_flight(group)
        async with asyncio.timeout(5.0):
            later = await waiting
        held_later = limit.in_flight, limit.pending

    await until(lambda: limit.in_flight == 0)
    # aiohttp warns of connections whose responses are not closed.
    response.close()
    later.close()
    assert [1, 0, 0] == loads + in_flight(group)
    assert ((1, 1), (1, 0), (0, 0)) == (
        held,
        held_later,
        (limit.in_flight, limit.pending),
    )
    assert (200, 200) == (response.status, later.status)


async def test_an_unread_response_whose_server_hangs_up_gives_its_place_back(
    serve, limit, limiting
):
    """There is nothing in flight any more, and it is not taken off twice."""
    group = EndpointGroup.of(await serve([HEAD, b"ord", None]))
    async with connected(group, *limiting) as client:
        response = await client.get("/")
        await until(lambda: in_flight(limit, group) == [0, 0])
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()

        assert [0, 0] == in_flight(limit, group)


async def test_many_requests_on_one_connection_leave_nothing_on_it(
    serve, limit, limiting
):
    """Neither of those that are over, nor a failure that nobody has looked at."""
    whole = [HEAD, b"ord", 0.01, b"ers"]
    url = await serve(*[whole] * 20, [HEAD, b"ord", ConnectionResetError])
    counts = []
    async with connected(url, *limiting) as client:
        for _ in range(20):
            async with client.get("/") as response:
                protocol = response.connection.protocol
                await response.read()
            counts.append(len(protocol.closed._callbacks or ()))
        with pytest.raises(aiohttp.ClientError):
            await (await client.get("/")).read()

    assert 1 == len({*counts})


async def test_a_close_that_is_given_up_gives_the_place_back(
    serve, limit, limiting, caplog
):
    """The wait for the end of each connection is cancelled then."""
    url = await serve([HEAD, b"ord", 30.0])
    async with connected(url, *limiting) as client:
        response = await client.get("/")
        response.connection.protocol.closed.cancel()
        await until(lambda: limit.in_flight == 0)
        held = limit.in_flight
        response.close()

    assert (0, 0, []) == (held, limit.in_flight, caplog.messages)


async def test_a_websocket_holds_its_place_until_it_is_closed(echoing, limit, limiting):
    """It is a request in flight all the time."""
    async with connected(echoing, *limiting) as client:
        async with client.ws_connect("/") as socket:
            await socket.send_str("orders")

            assert "orders" == await socket.receive_str()
            assert 1 == limit.in_flight

        assert 0 == limit.in_flight
