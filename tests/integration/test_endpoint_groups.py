"""Several servers as one thing to call, with real sockets.

Of the cases of endpoints.md (f): 21, 63, 76, 99, 100; and 4.2 in a group.
"""

import asyncio
import gc
import io
import weakref

import aiohttp
import pytest
from aiohttp import web
from calls import call_of
from chains import SAFELY, connected, retrying

from aioretry_smithy import (
    EndpointGroup,
    EndpointSelectionStrategy,
    HttpRequest,
    client_decorator,
)

IN_ORDER = EndpointSelectionStrategy.in_order()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"


def group_of(*urls, **settings):
    """Make a group of servers that are asked in order."""
    return EndpointGroup.of(*urls, selection=IN_ORDER, **settings)


def in_flight(group):
    """Return how many requests are under way at each endpoint."""
    return [each.in_flight for each in group.states.values()]


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
