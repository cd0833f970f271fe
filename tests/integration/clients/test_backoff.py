"""What backoff does around a call of aiohttp, and what stands in its place."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

pytest.importorskip("backoff")

from aiohttp import web

# From Python 3.14 on.
pytestmark = pytest.mark.filterwarnings("ignore:.*iscoroutinefunction")


async def outcome_of(functions, name, url, *arguments):
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

    assert expected == await outcome_of(either, name, url)
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
        await outcome_of(functions, name, url, *arguments)
        servers.append(server)

    assert requests == [len(server.methods) for server in servers]


async def test_server_is_given_the_time_it_asks_for(theirs, ours, scripted, waits):
    """Retry-After is heard."""

    def throttled(request):
        return web.Response(status=503, headers={"Retry-After": "7"})

    for functions in (theirs, ours):
        _, url = await scripted(throttled, 200)
        await outcome_of(functions, "fetch_order", url)

    assert waits[0] <= 1.0
    assert pytest.approx(7.0, abs=0.1) == waits[1]


async def test_deadline_cuts_an_attempt(theirs, ours, scripted, monkeypatch):
    """The other limit is looked at between two attempts."""
    monkeypatch.setattr(aiohttp, "ClientTimeout", lambda total: total / 50)
    answered = asyncio.Event()

    async def slowly(request):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(answered.wait(), 0.5)
        return web.json_response({"state": "done"})

    outcomes = []
    for functions in (theirs, ours):
        _, url = await scripted(slowly)
        outcomes.append(await outcome_of(functions, "fetch_in_time", url))

    assert {"state": "done"} == outcomes[0]
    assert issubclass(outcomes[1], TimeoutError)
