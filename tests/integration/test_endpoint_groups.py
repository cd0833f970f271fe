"""Several servers as one thing to call, with real sockets.

Of the cases of endpoints.md (f): 21, 63, 76, 99, 100; and 4.2 in a group.
"""

from __future__ import annotations

import asyncio
import gc
import io
import random
import weakref

import aiohttp
import pytest
from aiohttp import web
from calls import call_of
from chains import SAFELY, connected, impatient, retrying

from aioretry_smithy import (
    EndpointGroup,
    EndpointSelectionStrategy,
    HedgingClient,
    HttpRequest,
    OutlierDetection,
    RequestLog,
    client_decorator,
)

IN_ORDER = EndpointSelectionStrategy.in_order()
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"


def group_of(*urls, **settings):
    """Make a group of servers that are asked in order."""
    return EndpointGroup.of(*urls, selection=IN_ORDER, **settings)


def in_flight(group):
    """Return how many requests are under way at each endpoint."""
    return [each.in_flight for each in group.states.values()]


async def test_dead_one_is_passed_over(serving, closed_port):
    """Cases 21, 63 and 77: at once, and it is left alone then."""
    hosts = []

    async def answer(request):
        hosts.append(request.headers["Host"])
        return web.Response(text="ok")

    server = await serving(answer)
    url = server.make_url("/")
    group = group_of(f"http://127.0.0.1:{closed_port}", url)
    async with connected(group, retrying(SAFELY)) as session:
        logs = []
        for _ in range(3):
            async with session.get("orders", params={"a": "1"}) as response:
                assert "ok" == await response.text()
                logs.append(RequestLog.of(response))

    assert [2, 1, 1] == [log.total_attempts for log in logs]
    assert "next_endpoint" == logs[0].children[0].delay_source
    assert [f"{url.host}:{url.port}"] * 3 == hosts
    assert f"{url}orders?a=1" == str(response.url)
    assert [0, 0] == in_flight(group)


async def test_in_flight_lasts_to_the_end_of_the_body(serve):
    """Case 100: and ends where it is read, released or closed."""
    gate = asyncio.Event()
    url = await serve([HEAD, gate, b"123456789"])
    group = group_of(url)
    async with connected(group) as session:
        seen = []
        for end in (aiohttp.ClientResponse.read, aiohttp.ClientResponse.close):
            gate.clear()
            response = await session.get("/")
            seen.append(in_flight(group))
            gate.set()
            ended = end(response)
            if ended is not None:
                await ended
            seen.append(in_flight(group))

    assert [[1], [0], [1], [0]] == seen


@pytest.mark.filterwarnings("ignore:Unclosed response")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_response_that_is_dropped_unread_gives_its_place_back(serve):
    """Case 100: once it is collected, its body has ended, or its connection."""
    gate = asyncio.Event()
    url = await serve([HEAD, gate, b"123456789"])
    group = group_of(url)
    async with connected(group, retrying(SAFELY)) as session:
        response = await session.get("/")
        before = in_flight(group)
        del response
        gc.collect()
        gate.set()
        for _ in range(100):
            gc.collect()
            if in_flight(group) == [0]:
                break
            await asyncio.sleep(0.01)
        after = in_flight(group)

    assert ([1], [0]) == (before, after)


async def test_stale_connection_is_sent_again(serve):
    """4.2 in a group: no failure of the endpoint, and each request has it."""
    url = await serve([OK], [ConnectionResetError], [OK])
    group = group_of(url, outlier_detection=OutlierDetection(consecutive_failures=1))
    async with connected(group, retrying(SAFELY)) as session:
        for _ in range(2):
            async with session.get("/") as response:
                await response.read()
                log = RequestLog.of(response)

    assert ["stale_connection", None] == [each.delay_source for each in log.children]
    (endpoint,) = map(str, group.endpoints)
    assert [endpoint, endpoint] == [each.endpoint for each in log.children]
    (state,) = group.states.values()
    assert ([0], 0, 0.0) == (in_flight(group), state.failures, state.penalty)


async def test_stale_connection_without_retries(serve):
    """The call itself has the facts of both."""
    url = await serve([OK], [ConnectionResetError], [OK])
    group = group_of(url)
    async with connected(group) as session:
        for _ in range(2):
            async with session.get("/") as response:
                await response.read()

    assert [0] == in_flight(group)


async def test_websocket_is_under_way_until_it_is_closed(echoing):
    """It occupies its server."""
    group = group_of(echoing)
    async with connected(group) as session:
        async with session.ws_connect("/") as websocket:
            await websocket.send_str("hello")
            message = await websocket.receive()
            during = in_flight(group)
        after = in_flight(group)

    assert ("hello", [1], [0]) == (message.data, during, after)


async def test_request_made_by_hand_inside_goes_to_the_one_chosen(serving):
    """Not to the base URL of the session, which is that of the first endpoint."""
    asked = []

    def handler(name):
        async def answer(request):
            asked.append((name, request.path))
            return web.Response(status=503 if name == "a" else 200)

        return answer

    first, second = await serving(handler("a")), await serving(handler("b"))
    group = group_of(first.make_url("/"), second.make_url("/"))

    @client_decorator
    async def by_hand(delegate, ctx, request):
        return await delegate.execute(ctx, HttpRequest("GET", "/by-hand"))

    session = connected(group, by_hand, retrying(0.0))
    async with session, session.get("/orders") as response:
        assert 200 == response.status

    assert [("a", "/by-hand"), ("b", "/by-hand")] == asked


@pytest.mark.slow
async def test_random_cancellations_leave_nothing_under_way(serving):
    """Case 99: of bodies, hedges and retries."""
    chance = random.Random(2)

    async def answer(request):
        await asyncio.sleep(chance.choice([0.0, 0.001, 0.01]))
        response = web.StreamResponse(status=chance.choice([200, 200, 503]))
        await response.prepare(request)
        await response.write(b"one")
        await asyncio.sleep(chance.choice([0.0, 0.005]))
        await response.write(b"two")
        return response

    servers = [await serving(answer) for _ in range(3)]
    group = EndpointGroup.of(*(each.make_url("/") for each in servers))
    hedging = HedgingClient.new_decorator(0.005, max_hedges=1)
    async with connected(
        group, hedging, retrying(0.001, max_total_attempts=3)
    ) as session:

        async def call():
            async with session.get("/") as response:
                if chance.random() < 0.7:
                    await response.read()

        await impatient(
            chance, (call() for _ in range(300)), pauses=(0.0, 0.002), cancelled=0.3
        )
        for _ in range(200):
            if in_flight(group) == [0, 0, 0]:
                break
            await asyncio.sleep(0.01)

        assert [0, 0, 0] == in_flight(group)


async def test_connection_in_the_pool_does_not_keep_the_call(serving):
    """Nor its body: it has the context that it was opened in, while it is open."""
    calls = []

    class Body(io.BytesIO):
        """One that can be watched."""

    @client_decorator
    async def notice(delegate, ctx, request):
        calls.extend([weakref.ref(call_of(ctx)), weakref.ref(request.options["data"])])
        return await delegate.execute(ctx, request)

    async def answer(request):
        return web.Response(body=await request.read())

    server = await serving(answer)
    async with connected(group_of(server.make_url("/")), notice) as session:
        async with session.post("/", data=Body(b"1")) as response:
            await response.read()
        del response
        gc.collect()
        kept = [each() for each in calls]

    assert [None, None] == kept


async def test_task_that_outlives_a_call_is_none_of_it(serving):
    """It may follow a redirect away from the endpoint of that."""
    gate, tasks = asyncio.Event(), []

    async def answer(request):
        if request.path == "/away":
            raise web.HTTPFound(stranger.make_url("/"))
        return web.Response()

    server, stranger = await serving(answer), await serving(answer)

    async def go_away():
        await gate.wait()
        async with other_session.get(server.make_url("/away")) as response:
            return response.url

    @client_decorator
    async def begin(delegate, ctx, request):
        tasks.append(asyncio.create_task(go_away()))
        return await delegate.execute(ctx, request)

    group, other = group_of(server.make_url("/")), group_of(stranger.make_url("/"))
    async with connected(group, begin) as session, connected(other) as other_session:
        async with session.get("/"):
            pass
        gate.set()
        assert [stranger.make_url("/")] == await asyncio.gather(*tasks)

    assert [0] == in_flight(group)
