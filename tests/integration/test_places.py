"""How long a request on a real connection holds its place under a limit."""

import asyncio
import gc

import aiohttp
import pytest
from chains import connected, pass_on
from until import until

from aioretry_smithy import ConcurrencyLimit, ConcurrencyLimitingClient

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"


@pytest.fixture
def limit():
    return ConcurrencyLimit.fixed(1)


@pytest.fixture(params=[(), (pass_on,)], ids=["alone", "beside a decorator"])
def limiting(limit, request):
    return *request.param, ConcurrencyLimitingClient.new_decorator(limit)


async def test_a_response_that_is_dropped_gives_its_place_back(serve, limit, limiting):
    """When the server has hung up, at the latest."""
    url = await serve([HEAD, b"ord", None])
    async with connected(url, *limiting) as client:
        response = await client.get("/")
        held = limit.in_flight
        del response
        # Until then the connection itself has the response.
        async with asyncio.timeout(5.0):
            while limit.in_flight:
                await asyncio.sleep(0.01)
                gc.collect()

        assert 1 == held


async def test_a_session_that_is_closed_gives_the_places_of_its_responses_back(
    serve, limit, limiting
):
    """At once, though a variable still has a response that nobody has read."""
    url = await serve([HEAD, b"ord", 30.0])
    async with connected(url, *limiting) as client, connected(url, *limiting) as other:
        response = await client.get("/")
        waiting = asyncio.create_task(other.get("/"))
        await until(lambda: limit.pending)
        held = limit.in_flight, limit.pending
        await client.close()
        async with asyncio.timeout(5.0):
            later = await waiting
        held_later = limit.in_flight, limit.pending

    await until(lambda: limit.in_flight == 0)
    # aiohttp warns of connections whose responses are not closed.
    response.close()
    later.close()
    assert ((1, 1), (1, 0), (0, 0)) == (
        held,
        held_later,
        (limit.in_flight, limit.pending),
    )
    assert (200, 200) == (response.status, later.status)


async def test_an_unread_response_whose_server_hangs_up_gives_its_place_back(
    serve, limit, limiting
):
    """There is nothing in flight any more."""
    url = await serve([HEAD, b"ord", None])
    async with connected(url, *limiting) as client:
        response = await client.get("/")
        await until(lambda: limit.in_flight == 0)
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()

        assert 0 == limit.in_flight


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
