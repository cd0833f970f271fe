"""What aiohttp-retry does, and what stands in its place."""

import asyncio

import aiohttp
import pytest

pytest.importorskip("aiohttp_retry")

from aiohttp import web
from aiohttp_retry import ExponentialRetry, FibonacciRetry, JitterRetry, ListRetry
from stream_server import hang_up

pytestmark = [
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
    pytest.mark.usefixtures("_connections_left_behind"),
]


async def status_of(client, method="GET", **arguments):
    async with client, client.request(method, "/", **arguments) as response:
        return response.status


async def error_of(call):
    try:
        return await call
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        return type(error)


def pending(request):
    return web.json_response({"state": "pending"})


async def test_server_error_is_retried_twice(either, scripted, waits):
    """With the same waits before the second attempt and the third."""
    server, url = await scripted(503, 503, 200)

    assert 200 == await status_of(either.new_client(url))
    assert ["GET"] * 3 == server.methods
    assert pytest.approx([0.2, 0.4], abs=0.1) == waits


async def test_session_of_the_caller_gets_retries(either, scripted, waits):
    """It is one that was there before."""
    server, url = await scripted(503, 200)
    async with aiohttp.ClientSession(url) as session:
        response = await either.around(session).get("/")

    assert 200 == response.status
    assert ["GET"] * 2 == server.methods


@pytest.mark.parametrize(
    ("answers", "method", "requests"),
    [
        ([429, 200], "GET", 2),
        ([503, 200], "GET", 1),
        ([429, 200], "POST", 1),
    ],
)
async def test_settings_narrow_down_what_is_retried(
    either, scripted, waits, answers, method, requests
):
    """To a status and a method."""
    server, url = await scripted(*answers)
    await status_of(either.new_picky_client(url), method)

    assert requests == len(server.methods)


async def test_body_decides(either, scripted, waits):
    """A success that says it is pending is asked for again."""
    server, url = await scripted(pending, 503, 200)
    async with either.new_waiting_client(url) as client, client.get("/") as response:
        answer = await response.json()

    assert {"state": "done"} == answer
    assert ["GET"] * 3 == server.methods


async def test_last_attempt_is_known(either, scripted, waits, caplog):
    """And noted in the log, once."""
    _, url = await scripted(503, 503, 200)
    await status_of(either.new_traced_client(url))

    lines = [record.message for record in caplog.records if record.name == "orders"]
    assert ["the last attempt"] == lines


async def test_call_can_do_without_retries(either, scripted):
    """Where the others of its client are retried."""
    server, url = await scripted(503, 200)
    async with either.new_client(url) as client:
        status = await either.fetch_once(client)

    assert 503 == status
    assert ["GET"] == server.methods


async def test_broken_connection_is_retried(theirs, ours, scripted, waits):
    """Without a list of exceptions; the other library has none by default."""
    impatient, url = await scripted(hang_up, hang_up, 200)
    gone = await error_of(status_of(theirs.new_client(url)))
    server, url = await scripted(hang_up, hang_up, 200)
    status = await status_of(ours.new_client(url))

    assert aiohttp.ServerDisconnectedError is gone
    assert 2 == len(impatient.methods)
    assert 200 == status
    assert 3 == len(server.methods)


async def test_three_attempts_are_three_requests(theirs, ours, scripted, waits):
    """Where aiohttp resends by itself they are six."""
    twice, url = await scripted(hang_up)
    await error_of(status_of(theirs.new_picky_client(url)))
    server, url = await scripted(hang_up)
    await error_of(status_of(ours.new_picky_client(url)))

    assert [6, 3] == [len(twice.methods), len(server.methods)]


async def test_total_is_that_of_the_call(theirs, ours, scripted, waits):
    """Not of each attempt."""
    pause = asyncio.Event()

    async def slowly(request):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pause.wait(), 0.5)
        return web.Response(status=503)

    timeout = aiohttp.ClientTimeout(total=0.65)
    requests = []
    for functions in (theirs, ours):
        server, url = await scripted(slowly)
        await status_of(functions.new_client(url), timeout=timeout)
        requests.append(len(server.methods))

    assert [3, 1] == requests


async def test_client_is_a_session(theirs, ours, scripted):
    """What takes a session takes it."""
    async with theirs.new_client("http://localhost") as client:
        assert not isinstance(client, aiohttp.ClientSession)
    async with ours.new_client("http://localhost") as session:
        assert isinstance(session, aiohttp.ClientSession)


def test_first_wait_is_not_the_one_that_was_given():
    """Attempts are counted from one, the waits they are looked up by from zero."""
    exponential = ExponentialRetry(start_timeout=0.1)
    listed = ListRetry([1.0, 2.0, 3.0])

    assert [0.2, 2.0] == [each.get_timeout(attempt=1) for each in (exponential, listed)]


def test_waits_of_fibonacci_go_on_from_call_to_call():
    """The options keep count for all calls together."""
    options = FibonacciRetry(max_timeout=100.0)
    waits = [options.get_timeout(attempt=attempt) for attempt in (1, 2, 1, 2)]

    assert [2.0, 3.0, 5.0, 8.0] == waits


def test_jitter_is_up_to_four_seconds_of_any_wait():
    """Also beyond the longest one."""
    options = JitterRetry(start_timeout=0.1, max_timeout=0.1)
    waits = [options.get_timeout(attempt=1) for _ in range(100)]

    assert 1.0 < max(waits) <= 4.1


async def test_list_of_urls_survives_a_dead_server(either, scripted, closed_port):
    """Nobody listens at the first one."""
    server, url = await scripted(200)
    dead = f"http://127.0.0.1:{closed_port}"

    assert 200 == await either.fetch_from_any(dead, url)
    assert ["GET"] == server.methods
