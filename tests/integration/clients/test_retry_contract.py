"""What other people's retries of aiohttp have in common, and ours do in their place."""

import asyncio
import io
from dataclasses import replace
from functools import partialmethod

import aiohttp
import pytest
from aiohttp import web
from stream_server import hang_up, in_pieces

from aioretry_smithy import RequestLog, RetryingClient, decorate, unwrap

AROUND = "in_place_of_retries_around_aiohttp"
LIBRARIES = {
    "aiohttp": ("with_middlewares", "in_place_of_middlewares"),
    "aiohttp_retry": ("with_aiohttp_retry", "in_place_of_aiohttp_retry"),
    "backoff": ("with_backoff", "in_place_of_backoff"),
    "stamina": ("with_stamina_around_aiohttp", AROUND),
    "tenacity": ("with_tenacity_around_aiohttp", AROUND),
}
"""The example with each library, and the one without it."""

METHODS = {"fetch_order": "GET", "place_order": "POST", "upload": "PUT"}

pytestmark = [
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
    # From Python 3.14 on.
    pytest.mark.filterwarnings("ignore:.*iscoroutinefunction"),
    pytest.mark.usefixtures("_connections_left_behind"),
]


@pytest.fixture(params=LIBRARIES)
def library(request):
    """Each library in turn."""
    # "backoff" alone is a folder of these tests, too.
    name = {"backoff": "backoff.types"}.get(request.param, request.param)
    module = pytest.importorskip(name)
    if request.param != "stamina":
        yield request.param
        return
    # Its hooks go by what else is installed.
    module.instrumentation.set_on_retry_hooks([])
    yield request.param
    module.instrumentation.set_on_retry_hooks(None)


@pytest.fixture
def theirs(library, example):
    """The example with the library."""
    return example(LIBRARIES[library][0])


@pytest.fixture
def ours(library, example):
    """The example without the library."""
    return example(LIBRARIES[library][1])


async def status_of(functions, url, name, *body, seconds=None):
    """Make a call by a function of an example, or by a client that it makes."""
    new_client = getattr(functions, "new_client", None) or functions.new_session
    async with new_client(url) as client:
        try:
            async with asyncio.timeout(seconds):
                if (function := getattr(functions, name, None)) is not None:
                    await function(client, *body)
                    return 200
                data = next(iter(body), None)
                async with client.request(METHODS[name], "/", data=data) as response:
                    return response.status
        except aiohttp.ClientResponseError as error:
            return error.status
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return type(error)


async def test_server_error_is_retried_twice(library, either, scripted, waits):
    """And the caller gets it after the third attempt."""
    server, url = await scripted(503, 503, 200)
    recovered = await status_of(either, url, "fetch_order")
    failing, url = await scripted(503)
    lost = await status_of(either, url, "fetch_order")

    assert [200, 503] == [recovered, lost]
    assert [3, 3] == [len(server.methods), len(failing.methods)]


async def test_server_is_given_the_time_it_asks_for(theirs, ours, scripted, waits):
    """Retry-After is heard; a part of the backoff is added."""

    def throttled(request):
        return web.Response(status=503, headers={"Retry-After": "7"})

    for functions in (theirs, ours):
        _, url = await scripted(throttled, 200)
        await status_of(functions, url, "fetch_order")

    assert waits[0] <= 1.2
    assert 7.0 <= waits[1] <= 7.0 + 1.2


async def test_post_is_sent_once(theirs, ours, scripted, waits):
    """Not as often as there are attempts."""
    repeated, url = await scripted(503, 503, 200)
    await status_of(theirs, url, "place_order", b"an order")
    server, url = await scripted(503, 503, 200)
    await status_of(ours, url, "place_order", b"an order")

    assert ["POST"] * 3 == repeated.methods
    assert ["POST"] == server.methods


RAISING = ["backoff", "stamina", "tenacity"]
"""Those around a function that raises for a status."""


@pytest.mark.parametrize("library", RAISING, indirect=True)
@pytest.mark.parametrize(
    ("name", "body", "answer", "requests"),
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
    theirs, ours, scripted, waits, name, body, answer, requests
):
    """What cannot help, or may do harm, is not sent again."""
    servers = []
    for functions in (theirs, ours):
        server, url = await scripted(answer)
        await status_of(functions, url, name, *body)
        servers.append(server)

    assert requests == [len(server.methods) for server in servers]


async def cut_short(request):
    """Send a part of a body, and break off."""
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"[")
    request.transport.close()
    return response


@pytest.mark.parametrize("library", RAISING, indirect=True)
async def test_body_that_breaks_off_is_the_callers(theirs, ours, scripted, waits):
    """Theirs read it in the attempt; so does ours when it is told to."""
    lost, url = await scripted(cut_short, 200)
    assert 200 == await status_of(theirs, url, "fetch_order")
    given, url = await scripted(cut_short, 200)
    assert aiohttp.ClientPayloadError is await status_of(ours, url, "fetch_order")
    server, url = await scripted(cut_short, 200)
    async with ours.new_session(url) as session:
        retrying = unwrap(session, RetryingClient)
        retrying.config = replace(retrying.config, buffer_response=True)
        await ours.fetch_order(session)

    assert [2, 1, 2] == [len(each.methods) for each in (lost, given, server)]


@pytest.mark.parametrize("library", RAISING, indirect=True)
async def test_total_of_the_session_is_that_of_the_call(theirs, ours, scripted, waits):
    """Not of each attempt; each answer takes most of it."""
    pause = asyncio.Event()

    async def slowly(request):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pause.wait(), 0.5)
        return web.Response(status=503)

    async with ours.new_session("http://localhost") as session:
        retrying = RetryingClient.new_decorator(unwrap(session, RetryingClient).config)
    requests = []
    for functions, decorators in ((theirs, []), (ours, [retrying])):
        server, url = await scripted(slowly)
        settings = {"raise_for_status": True, "timeout": aiohttp.ClientTimeout(0.65)}
        async with aiohttp.ClientSession(url, **settings) as session:
            decorate(session, *decorators)
            with pytest.raises((aiohttp.ClientResponseError, TimeoutError)):
                await functions.fetch_order(session)
        requests.append(len(server.methods))

    assert 3 == requests[0]
    assert requests[1] < 3


@pytest.mark.parametrize("library", RAISING, indirect=True)
async def test_failure_has_the_log_of_the_call(ours, scripted, waits):
    """The error that the session raises for a status leads to it."""
    _, url = await scripted(503)
    async with ours.new_session(url) as session:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await ours.fetch_order(session)

    assert 3 == RequestLog.of(caught.value).total_attempts


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("aiohttp_retry", "upload"),
        ("backoff", "place_order"),
        ("stamina", "upload"),
        ("tenacity", "upload"),
    ],
    indirect=["library"],
)
@pytest.mark.parametrize("new_body", [lambda: io.BytesIO(b"a report"), in_pieces])
async def test_body_is_sent_whole_or_not_again(
    theirs, ours, scripted, waits, name, new_body
):
    """Not empty, with a success for an answer."""
    lossy, url = await scripted(503, 503, 200)
    seen = await status_of(theirs, url, name, new_body())
    server, url = await scripted(503, 503, 200)
    status = await status_of(ours, url, name, new_body())

    assert 200 == seen
    assert [b"a report", b"", b""] == lossy.bodies
    assert {b"a report"} == {*server.bodies}
    assert (status == 200) is (len(server.bodies) == 3)


@pytest.mark.parametrize(
    "library", ["aiohttp_retry", "stamina", "tenacity"], indirect=True
)
async def test_file_is_sent_again(theirs, ours, scripted, waits, tmp_path):
    """It is not closed by the first attempt."""
    path = tmp_path / "report"
    path.write_bytes(b"a report")
    closed, url = await scripted(503, 503, 200)
    with path.open("rb") as file:
        await status_of(theirs, url, "upload", file)
    server, url = await scripted(503, 503, 200)
    with path.open("rb") as file:
        status = await status_of(ours, url, "upload", file)

    assert 1 == closed.bodies.count(b"a report")
    assert 200 == status
    assert [b"a report"] * 3 == server.bodies


@pytest.mark.slow
async def test_response_given_up_frees_its_connection(
    library, theirs, ours, scripted, waits, monkeypatch
):
    """The next attempt does not wait for it, as with those that keep the response."""

    def large(request):
        return web.Response(status=503, body=bytes(3_000_000))

    connect_once = partialmethod(aiohttp.TCPConnector.__init__, limit=1)
    monkeypatch.setattr(aiohttp.TCPConnector, "__init__", connect_once)
    outcomes = []
    for example_functions in (theirs, ours):
        _, url = await scripted(large, large, 200)
        outcomes.append(
            await status_of(example_functions, url, "fetch_order", seconds=2.0)
        )

    stuck = library in {"aiohttp", "aiohttp_retry"}
    assert [TimeoutError if stuck else 200, 200] == outcomes
