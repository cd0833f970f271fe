"""Bodies that are sent are counted and timed; nothing else is touched."""

import asyncio
import gc
import weakref

import aiohttp
import pytest
from aiohttp import web
from aiohttp.compression_utils import ZLibCompressor
from chains import SAFELY, connected, pass_on, retrying

from aioretry_smithy import (
    RequestLog,
    SessionBuilder,
    capture_logs,
    decorate,
    undecorate,
)
from aioretry_smithy._session.request_classes import current_upload


@pytest.fixture
async def url(aiohttp_raw_server):
    """A server that reads what it gets, and is busy once where asked to be."""

    async def handler(request):
        await request.read()
        if request.path == "/away":
            raise web.HTTPTemporaryRedirect("/")
        busy = request.path == "/busy" and "armeria-retry-count" not in request.headers
        return web.Response(status=503 if busy else 200, text="fine")

    server = await aiohttp_raw_server(handler)
    return server.make_url("/")


async def chunks():
    for _ in range(3):
        await asyncio.sleep(0.01)
        yield b"12345"


@pytest.mark.parametrize(
    ("body", "length"),
    [
        pytest.param({"data": b"12345"}, 5, id="bytes"),
        pytest.param({"data": b"1" * 300_000}, 300_000, id="many bytes"),
        pytest.param({"json": {"a": 1}}, 8, id="json"),
        pytest.param({"data": {"a": "1"}}, 3, id="form"),
        pytest.param({"data": b"12345", "compress": True}, 5, id="compressed"),
        pytest.param({"data": b"12345", "chunked": True}, 5, id="chunked"),
        pytest.param(
            {"data": b"12345", "headers": {"Content-Length": "3"}}, 3, id="cut"
        ),
    ],
)
@pytest.mark.parametrize("path", ["/", "/busy", "/away"])
async def test_body_that_was_sent(url, body, length, path):
    """Its bytes are counted once an attempt, and the last one is timed."""
    async with (
        connected(url, retrying(SAFELY)) as session,
        session.put(path, **body) as response,
    ):
        log = RequestLog.of(response)

        assert all(length == each.request_length for each in (log, *log.children))
        # The clock of uvloop counts in milliseconds.
        assert all(each.request_duration >= 0 for each in (log, *log.children))
        assert log.request_duration <= log.duration


async def test_body_that_comes_in_pieces(url):
    """The time is that of the last piece."""
    async with connected(url) as session, session.post("/", data=chunks()) as response:
        log = RequestLog.of(response)
        tick = getattr(asyncio.get_running_loop(), "_clock_resolution", 0.001)

    assert 15 == log.request_length
    assert log.request_duration > 0.0299 - tick


async def test_body_that_waits_to_be_continued(aiohttp_server):
    """It ends when it was sent, not when the request was made."""

    async def wait(request):
        await asyncio.sleep(0.05)
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def handler(request):
        return web.Response(text=str(len(await request.read())))

    app = web.Application()
    app.router.add_post("/", handler, expect_handler=wait)
    server = await aiohttp_server(app)
    async with (
        connected(server.make_url("/")) as session,
        session.post("/", data=b"12345", expect100=True) as response,
    ):
        received, log = await response.text(), RequestLog.of(response)

    assert ("5", 5) == (received, log.request_length)
    assert log.request_duration >= 0.04


async def test_body_that_waits_for_a_tracer(url):
    """It ends when it was sent, not when the tracer was told of it."""

    async def take_time(session, trace, told):
        await asyncio.sleep(0.05)

    tracer = aiohttp.TraceConfig()
    tracer.on_request_chunk_sent.append(take_time)
    async with connected(url, trace_configs=[tracer]) as session:
        log = RequestLog.of(await session.post("/", data=b"12345"))

    assert 5 == log.request_length
    assert log.request_duration >= 0.04


async def test_body_that_waits_for_its_compression(url, monkeypatch):
    """It ends when it was sent, not when a thread began to compress it."""
    compress = ZLibCompressor.compress

    async def take_time(self, data):
        await asyncio.sleep(0.05)
        return await compress(self, data)

    monkeypatch.setattr(ZLibCompressor, "compress", take_time)
    async with connected(url) as session:
        log = RequestLog.of(await session.post("/", data=b"1" * 9000, compress=True))

    assert 9000 == log.request_length
    assert log.request_duration >= 0.04


async def test_body_that_is_not_sent_to_its_end(url):
    """A body that breaks off has no last byte."""

    async def broken():
        yield b"12345"
        await asyncio.sleep(0.01)
        raise OSError("no more")

    async with connected(url) as session:
        with capture_logs() as logs, pytest.raises(aiohttp.ClientError):
            await session.post("/", data=broken())

    assert 5 == logs[0].request_length
    assert logs[0].request_duration is None


async def test_call_inside_a_body_is_not_counted_as_the_body(url):
    """A body that asks a plain session for its text is as long as its own text."""
    plain = decorate(aiohttp.ClientSession(url))
    undecorate(plain)

    async def asking():
        async with plain.post("/", data=b"123") as response:
            yield await response.read()

    async with connected(url) as session, plain:
        log = RequestLog.of(await session.post("/", data=asking()))

    assert 4 == log.request_length


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(
    "chain", [[], [retrying()], [retrying(), pass_on]], ids=["none", "all", "inside"]
)
async def test_call_of_a_middleware_is_not_counted_as_the_body(url, before, chain):
    """A middleware may ask for a token first, and report to a server afterwards."""
    lengths = []

    async def asking(request, handler):
        if request.url.path != "/":
            return await handler(request)
        response = None if before else await handler(request)
        async with session.post("/token", data=b"123") as answer:
            lengths.append(RequestLog.of(answer).request_length)
        return response or await handler(request)

    async with connected(url, *chain, middlewares=[asking]) as session:
        log = RequestLog.of(await session.post("/", data=b"12345"))

    assert [5, 3] == [log.request_length, *lengths]
    assert current_upload() is None


@pytest.mark.parametrize("chain", [[], [retrying()]], ids=["none", "all"])
async def test_body_is_counted_that_a_middleware_sends_in_a_task(url, chain):
    """A middleware may limit the time, or send again in tasks of its own."""

    async def hurrying(request, handler):
        return await asyncio.create_task(handler(request))

    async with connected(url, *chain, middlewares=[hurrying]) as session:
        log = RequestLog.of(await session.post("/", data=b"12345"))

    assert 5 == log.request_length
    assert log.request_duration >= 0
    assert current_upload() is None


async def test_body_that_the_transport_does_not_take(url, monkeypatch):
    """A connection that closes before the body is sent takes no byte of it."""

    async def write(*arguments, **options):
        raise aiohttp.ClientConnectionResetError("closing")

    monkeypatch.setattr(aiohttp.http.StreamWriter, "write", write)
    async with connected(url) as session:
        with capture_logs() as logs, pytest.raises(aiohttp.ClientError):
            await session.post("/", data=b"12345")

    assert (0, None) == (logs[0].request_length, logs[0].request_duration)


async def test_log_can_be_awaited(url):
    """It comes when the body has ended, to each task that waits."""
    async with connected(url) as session:
        with capture_logs() as logs:
            call = asyncio.create_task(session.get("/"))
            await asyncio.sleep(0)
        gone = asyncio.create_task(logs[0].when_complete())
        waiting = asyncio.create_task(logs[0].when_complete())
        await asyncio.sleep(0)
        gone.cancel()
        response = await call
        await response.read()
        log = await waiting

    assert RequestLog.of(response) is log is await log.when_complete()
    assert (4, True) == (log.response_length, log.is_complete)


async def test_request_past_the_chain_is_not_counted(url):
    """A call of the class's own method does what aiohttp does."""
    async with connected(url) as session:
        with capture_logs() as logs:
            response = await aiohttp.ClientSession._request(
                session, "POST", "/", data=b"past"
            )

        assert "fine" == await response.text()
        assert [] == logs


async def test_requests_that_a_function_makes_are_not_counted(url):
    """A function that makes requests cannot be measured, and works as before."""

    def make_request(*arguments, **options):
        return aiohttp.ClientRequest(*arguments, **options)

    async with connected(url, request_class=make_request) as session:
        response = await session.post("/", data=b"made")

        assert "fine" == await response.text()
        assert RequestLog.of(response).request_length is None


async def test_class_of_requests_is_freed_with_its_session(url):
    """A class that is made for one session does not live on."""

    async def send():
        kind = type("Own", (aiohttp.ClientRequest,), {})
        async with connected(url, request_class=kind) as session:
            response = await session.post("/", data=b"12345")
            assert 5 == RequestLog.of(response).request_length
        return weakref.ref(kind)

    gone = await send()
    await asyncio.sleep(0)
    gc.collect()

    assert None is gone()


async def test_sessions_with_one_class_of_requests_are_measured_alike(url):
    """Also when the first of them is gone."""
    kind = type("Own", (aiohttp.ClientRequest,), {})
    for _ in range(2):
        builder = SessionBuilder(url, request_class=kind)
        async with builder.build() as one, builder.build() as other:
            assert one._request_class is other._request_class
            for session in (one, other):
                response = await session.post("/", data=b"12345")
                assert 5 == RequestLog.of(response).request_length
        del one, other, session, response
        gc.collect()
