"""What backoff does around a call of aiohttp, and what stands in its place."""

from __future__ import annotations

import asyncio
import io

import aiohttp
import pytest

pytest.importorskip("backoff")

from aiohttp import web

from aioretry_smithy import ResponseTimeoutError, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport

# From Python 3.14 on.
pytestmark = pytest.mark.filterwarnings("ignore:.*iscoroutinefunction")


async def call(functions, name, url, *arguments):
    async with functions.new_session(url) as session:
        try:
            return await getattr(functions, name)(session, *arguments)
        except aiohttp.ClientResponseError as error:
            return error.status
        except (aiohttp.ClientError, TimeoutError) as error:
            return type(error)


def hang_up(request):
    request.transport.abort()
    return web.Response()


def pending(request):
    return web.json_response({"state": "pending"})


@pytest.mark.parametrize(
    ("name", "answers", "expected"),
    [
        ("fetch_order", [503, 503, 200], {"state": "done"}),
        ("fetch_order", [503, 503, 503], 503),
        ("fetch_in_time", [503, 503, 200], {"state": "done"}),
        ("fetch_when_done", [pending, pending, 200], {"state": "done"}),
        ("fetch_when_done", [pending] * 3, {"state": "pending"}),
    ],
)
async def test_same_calls_with_the_same_outcome(
    either, scripted, waits, name, answers, expected
):
    """Each function asks as often as the one it stands for."""
    server, url = await scripted(*answers)

    assert expected == await call(either, name, url)
    assert len(answers) == len(server.methods)


@pytest.mark.parametrize(
    ("name", "arguments", "answer", "requests"),
    [
        # A mistake of the caller is no failure of the server.
        ("fetch_order", (), 404, [3, 1]),
        # The server may have carried it out.
        ("place_order", (b"an order",), hang_up, [3, 1]),
        # aiohttp sends each attempt of the one twice.
        ("fetch_order", (), hang_up, [6, 3]),
    ],
    ids=["404", "POST", "resend"],
)
async def test_requests_that_are_not_made(
    theirs, ours, scripted, waits, name, arguments, answer, requests
):
    """What cannot help, or may do harm, is not sent again."""
    servers = []
    for functions in (theirs, ours):
        server, url = await scripted(answer)
        await call(functions, name, url, *arguments)
        servers.append(server)

    assert requests == [len(server.methods) for server in servers]


async def in_pieces():
    yield b"an order"


@pytest.mark.parametrize("new_body", [lambda: io.BytesIO(b"an order"), in_pieces])
async def test_body_is_not_sent_empty(theirs, ours, scripted, waits, new_body):
    """With a success for an answer."""
    lossy, url = await scripted(503, 503, 200)
    seen = await call(theirs, "place_order", url, new_body())
    server, url = await scripted(503, 503, 200)
    await call(ours, "place_order", url, new_body())

    assert seen is None  # no failure
    assert [b"an order", b"", b""] == lossy.bodies
    assert [b"an order"] == server.bodies


async def test_server_is_given_the_time_it_asks_for(theirs, ours, scripted, waits):
    """Retry-After is heard."""

    def throttled(request):
        return web.Response(status=503, headers={"Retry-After": "7"})

    for functions in (theirs, ours):
        _, url = await scripted(throttled, 200)
        await call(functions, "fetch_order", url)

    assert waits[0] <= 1.0
    assert pytest.approx(7.0, abs=0.1) == waits[1]


@pytest.mark.virtual_time
async def test_deadline_cuts_an_attempt(theirs, ours, outcome_of):
    """The other limit is looked at between two attempts."""

    async def silent(ctx, request):
        await asyncio.sleep(60.0)
        return 200, {"Content-Type": "application/json"}, b"{}"

    outcomes = []
    for functions in (theirs, ours):
        builder = SessionBuilder("http://localhost")
        builder.decorator(ScriptedTransport([silent]))
        async with builder.build() as session:
            outcomes.append(await outcome_of(functions.fetch_in_time(session)))

    assert [({}, 60.0), (ResponseTimeoutError, 10.0)] == outcomes
