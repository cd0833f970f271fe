"""Bodies that middlewares sign, and files of aiofiles and anyio, are sent again."""

import asyncio
import hashlib
import io
import os
import threading
from contextlib import asynccontextmanager

import aiofiles
import aiofiles.tempfile
import aiohttp
import anyio
import pytest
from aiohttp import web
from chains import SAFELY, connected, pass_on, retrying
from fault_server import End, FaultServer, answer, cut
from streamed_bodies import Once, Progress, fetch_token, form, multipart, pieces
from token_servers import LOGIN, PASSWORD, DigestServer
from until import until

from aioretry_smithy import (
    LoggingClient,
    RefreshingClient,
    RequestLog,
    RetrySafety,
    RetryStopReason,
    RetryStrategy,
    SessionBuilder,
    UnprocessedRequestError,
    capture_logs,
    client_decorator,
    retry_safety,
)

CONTENT = bytes(range(256)) * 400


READ_ONCE = {
    "generator": lambda: pieces(CONTENT),
    "progress": lambda: Progress(pieces(CONTENT)),
    "once": lambda: Once([CONTENT]),
    "multipart": lambda: multipart(pieces(CONTENT)),
    "form": lambda: form(pieces(CONTENT)),
}
SENT_AGAIN = {
    "bytes": lambda: CONTENT,
    "BytesIO": lambda: io.BytesIO(CONTENT),
    "form with BytesIO": lambda: form(io.BytesIO(CONTENT)),
    "factory of a generator": lambda: lambda: pieces(CONTENT),
    "factory of bytes": lambda: lambda: CONTENT,
}
every_body = pytest.mark.parametrize(
    "make", (READ_ONCE | SENT_AGAIN).values(), ids=READ_ONCE | SENT_AGAIN
)
every_stream = pytest.mark.parametrize("make", READ_ONCE.values(), ids=READ_ONCE)
every_chain = pytest.mark.parametrize(
    "decorator",
    [LoggingClient.new_decorator(), pass_on, retrying(), retrying(SAFELY)],
    ids=["logging", "ordinary", "retrying", "retrying safely"],
)


async def sign(request, send):
    """Send the hash of a body with it, as signatures of clouds do."""
    body = await request.body.as_bytes() if request.body else b""
    request.headers["X-Signature"] = hashlib.sha256(body).hexdigest()
    return await send(request)


class Signed:
    """A server that reads signed bodies, and refuses what is signed wrongly."""

    def __init__(self, *faults):
        self._faults = iter(faults)
        self.bodies = []

    async def handle(self, request):
        body = await request.read()
        self.bodies.append(body)
        if request.headers["X-Signature"] != hashlib.sha256(body).hexdigest():
            return web.Response(status=403)
        return web.Response(status=next(self._faults, 200))


async def put(session, data):
    async with session.put("/", data=data) as response:
        return response.status, RequestLog.of(response).stop_reason


@every_body
@every_chain
async def test_signed_body_goes_out(serving, make, decorator):
    """Whole, and as it was signed: what aiohttp has kept was not sent yet."""
    signed = Signed()
    url = (await serving(signed.handle)).make_url("/")
    async with connected(url, decorator, middlewares=[sign]) as session:
        status, _ = await put(session, make())

    assert 200 == status
    assert [True] == [CONTENT in body for body in signed.bodies]


@every_body
async def test_signed_body_is_sent_again(serving, make):
    """What aiohttp has kept can go out as often as it must."""
    signed = Signed(503, 503)
    url = (await serving(signed.handle)).make_url("/")
    async with connected(url, retrying(SAFELY), middlewares=[sign]) as session:
        outcome = await put(session, make())

    first, second, third = signed.bodies
    assert (200, None) == outcome
    assert CONTENT in first
    assert first == second == third


async def digest_session(serving, server, *decorators):
    url = (await serving(server.handle)).make_url("/")
    digest = aiohttp.DigestAuthMiddleware(LOGIN, PASSWORD)
    return connected(url, *decorators, middlewares=[digest])


@pytest.mark.slow
@every_body
@every_chain
async def test_body_is_hashed_by_digest_authentication(serving, make, decorator):
    """With ``auth-int``, once the server's challenge is known."""
    server = DigestServer()
    async with await digest_session(serving, server, decorator) as session:
        await session.get("/")
        status, _ = await put(session, make())

    assert 200 == status
    assert 0 == server.forged
    assert CONTENT in server.bodies[-1]


@every_body
async def test_hashed_body_is_sent_again(serving, make):
    """Each attempt is hashed anew, and has the same bytes."""
    server = DigestServer(200, 503, 503)
    async with await digest_session(serving, server, retrying(SAFELY)) as session:
        await session.get("/")
        outcome = await put(session, make())

    _, first, second, third = server.bodies
    assert (200, None) == outcome
    assert CONTENT in first
    assert first == second == third


@pytest.mark.parametrize("name", ["bytes", "BytesIO", "form with BytesIO"])
@every_chain
async def test_body_follows_the_challenge(serving, name, decorator):
    """Its first send had no signature, and the second one is as long."""
    server = DigestServer()
    async with await digest_session(serving, server, decorator) as session:
        status, _ = await put(session, SENT_AGAIN[name]())

    assert 200 == status
    assert server.unsigned == server.bodies
    assert CONTENT in server.bodies[0]


@every_stream
@pytest.mark.parametrize("strategy", [RetryStrategy.never(), SAFELY])
async def test_stream_does_not_follow_the_challenge(serving, make, strategy):
    """No empty body is signed in its place; the server has seen the first send."""
    server = DigestServer()
    async with await digest_session(serving, server, retrying(strategy)) as session:
        with pytest.raises(UnprocessedRequestError, match="read before") as caught:
            await put(session, make())

    assert 1 == len(server.unsigned)
    assert [] == server.bodies
    assert RetrySafety.YES is not retry_safety(caught.value)
    assert 1 == RequestLog.of(caught.value).total_attempts


@every_stream
async def test_middleware_that_sends_a_stream_twice_is_refused(serving, make):
    """By the error that is promised, and not by one of the connection."""
    signed = Signed()
    url = (await serving(signed.handle)).make_url("/")

    async def insist(request, send):
        request.headers["X-Signature"] = "none"
        (await send(request)).close()
        return await send(request)

    async with connected(url, retrying(SAFELY), middlewares=[insist]) as session:
        with pytest.raises(UnprocessedRequestError, match="read before") as caught:
            await put(session, make())

    log = RequestLog.of(caught.value)
    assert 1 == len(signed.bodies)
    assert RetryStopReason.BODY_NOT_REPLAYABLE is log.stop_reason
    assert RetrySafety.YES is not retry_safety(caught.value)


@pytest.mark.parametrize("look", ["as_bytes", "decode"])
async def test_pipe_that_a_middleware_has_read_is_refused(serving, look):
    """Nothing of it is left, and nothing is sent in its place."""
    signed = Signed()
    url = (await serving(signed.handle)).make_url("/")

    async def peek(request, send):
        if look == "decode":
            request.body.decode()
        else:
            await request.body.as_bytes()
        return await send(request)

    reading, writing = os.pipe()
    os.write(writing, b"pipe")
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        async with connected(url, retrying(SAFELY), middlewares=[peek]) as session:
            with pytest.raises(UnprocessedRequestError, match="read before") as caught:
                await put(session, pipe)

    assert [] == signed.bodies
    assert RetrySafety.NO is not retry_safety(caught.value)


async def update_body(request):
    """Exchange a body as aiohttp recommends."""
    await request.update_body(b"other")


async def assign_body(request):
    """Exchange a body as aiohttp advises against."""
    with pytest.warns(ResourceWarning, match="unclosed resources"):
        request.body = b"other"


@every_chain
@pytest.mark.filterwarnings("error::ResourceWarning")
@pytest.mark.parametrize("exchange", [update_body, assign_body])
async def test_middleware_may_exchange_a_file(tmp_path, decorator, exchange):
    """It sees what the file is called, and the file is closed as without a chain."""
    path, seen = tmp_path / "a.txt", []
    path.write_bytes(CONTENT)

    async def middleware(request, handler):
        seen.append((request.body.filename, request.body.encoding))
        await exchange(request)
        return await handler(request)

    async with (
        FaultServer() as server,
        connected(server.url, decorator, middlewares=[middleware]) as session,
    ):
        file = path.open(encoding="latin-1")
        await session.put("/", data=file)
        await until(lambda: file.closed)

    assert [("a.txt", "utf-8")] == seen
    assert [b"other"] == server.bodies


NUMBERS = b"".join(b"%d\n" % number for number in range(40))
OFFSET = 7


@asynccontextmanager
async def of_anyio(path):
    async with await anyio.open_file(path, "rb") as file:
        yield file


OPENERS = {
    "aiofiles": lambda path: aiofiles.open(path, "rb"),
    "aiofiles, unbuffered": lambda path: aiofiles.open(path, "rb", buffering=0),
    "anyio": of_anyio,
}
every_library = pytest.mark.parametrize("opened", OPENERS.values(), ids=OPENERS)


@pytest.fixture
def path(tmp_path):
    """The path of a file with many lines."""
    path = tmp_path / "lines"
    path.write_bytes(NUMBERS)
    return path


def form_with_file(value):
    data = aiohttp.FormData()
    data.add_field("file", value, filename="lines", content_type="text/plain")
    return data


WITHIN = {
    "alone": lambda file: file,
    "in a form": form_with_file,
    "in a multipart": multipart,
    "in a payload": aiohttp.AsyncIterablePayload,
}


class Stuck:
    """A file whose third line does not come until it is let go, once."""

    def __init__(self, file):
        self._file = file
        self._lines = 0
        self.is_read = threading.Event()
        self.goes_on = threading.Event()

    def readline(self, *arguments):
        self._lines += 1
        if self._lines == 3:
            self.is_read.set()
            assert self.goes_on.wait(10.0)
        return self._file.readline(*arguments)

    def __getattr__(self, name):
        return getattr(self._file, name)

    async def given_up_by(self, sending):
        """Cancel what sends it while a thread reads the third line."""
        task = asyncio.ensure_future(sending)
        await asyncio.to_thread(self.is_read.wait, 10.0)
        task.cancel()
        await asyncio.wait([task])


def stuck(file):
    """Let the file of a library get stuck once."""
    name = "_fp" if isinstance(file, anyio.AsyncFile) else "_file"
    setattr(file, name, Stuck(getattr(file, name)))
    return getattr(file, name)


@pytest.mark.slow
@every_library
@pytest.mark.parametrize("offset", [0, OFFSET])
@pytest.mark.parametrize("within", WITHIN.values(), ids=WITHIN)
async def test_file_is_sent_whole_each_time(path, opened, offset, within):
    """Through the standard chain, as a file of Python is."""
    async with (
        FaultServer([answer(503)]) as server,
        SessionBuilder.standard(server.url).build() as session,
        opened(path) as file,
    ):
        await file.seek(offset)
        async with session.put("/", data=within(file)) as response:
            status = response.status

    first, second = server.bodies
    assert 200 == status
    assert first == second
    assert NUMBERS[offset:] in first
    assert offset == 0 or NUMBERS not in first


@every_library
async def test_file_is_sent_again_on_a_stale_connection(path, opened):
    """At once, by the transport."""
    async with (
        FaultServer([answer(), cut(end=End.RESET)]) as server,
        connected(server.url, retrying(RetryStrategy.never())) as session,
        opened(path) as file,
    ):
        await session.get("/")
        async with session.put("/", data=file) as response:
            log = RequestLog.of(response)

    assert [NUMBERS] * 2 == server.bodies[1:]
    assert "stale_connection" == log.children[0].delay_source


@every_library
async def test_file_is_sent_again_with_another_token(path, opened):
    """By a POST, since the server has refused the first one."""
    async with (
        FaultServer([answer(401)]) as server,
        connected(server.url, RefreshingClient.new_decorator(fetch_token)) as session,
        opened(path) as file,
        session.post("/", data=file) as response,
    ):
        pass

    assert 200 == response.status
    assert [NUMBERS] * 2 == server.bodies


@every_library
async def test_read_of_a_cancelled_attempt_is_waited_for(path, opened):
    """A thread that reads on must not move the file under the next attempt."""
    async with FaultServer() as server, opened(path) as file:
        thread = stuck(file)

        @client_decorator
        async def give_up_first(delegate, ctx, request):
            if ctx.attempt == 1:
                await thread.given_up_by(delegate.execute(ctx, request))
                raise aiohttp.ClientConnectionError
            asyncio.get_running_loop().call_later(0.1, thread.goes_on.set)
            return await delegate.execute(ctx, request)

        async with (
            connected(server.url, give_up_first, retrying(SAFELY)) as session,
            session.put("/", data=file) as response,
        ):
            log = RequestLog.of(response)

    assert [NUMBERS] == server.bodies
    assert 2 == log.total_attempts


@every_library
@pytest.mark.parametrize("limit", [None, 0.05])
async def test_nothing_is_left_of_a_cancelled_call(path, opened, limit):
    """Who reads for it is let go of, and a second attempt that waits for the read."""
    async with (
        FaultServer() as server,
        connected(server.url, retrying(attempt_timeout=limit)) as session,
        opened(path) as file,
    ):
        thread, others = stuck(file), asyncio.all_tasks()
        with capture_logs() as logs:
            task = asyncio.create_task(session.put("/", data=file))
            await until(lambda: logs and len(logs[0].children) > bool(limit))
        await asyncio.sleep(0.01)
        await thread.given_up_by(task)
        await asyncio.sleep(0.01)
        left = [repr(each.get_coro()) for each in asyncio.all_tasks() - others]
        thread.goes_on.set()

    assert [] == server.bodies + [name for name in left if "FaultServer" not in name]


@every_library
@pytest.mark.parametrize("within", WITHIN.values(), ids=WITHIN)
async def test_file_goes_on_to_a_server_that_answers_early(
    aiohttp_raw_server, path, opened, within
):
    """Its headers end the call, not the sending: what comes is read to its end."""

    async def echo(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(await request.read())
        return response

    server = await aiohttp_raw_server(echo)
    async with (
        SessionBuilder.standard(server.make_url("/")).build() as session,
        opened(path) as file,
    ):
        thread = stuck(file)
        async with session.put("/", data=within(file)) as response:
            thread.goes_on.set()
            body = await response.read()

    assert NUMBERS in body


@every_library
async def test_progress_around_a_file_is_sent_once(path, opened):
    """It is no file, and has counted to its end."""
    async with (
        FaultServer([answer(503)]) as server,
        connected(server.url, retrying()) as session,
        opened(path) as file,
        session.put("/", data=Progress(file)) as response,
    ):
        log = RequestLog.of(response)

    assert 503 == response.status
    assert [NUMBERS] == server.bodies
    assert RetryStopReason.BODY_NOT_REPLAYABLE is log.stop_reason


@every_library
async def test_file_closed_after_an_attempt_leaves_its_answer(opened, path):
    """It cannot be rewound, as a closed file of Python's own cannot."""

    @client_decorator
    async def close(delegate, ctx, request):
        try:
            return await delegate.execute(ctx, request)
        finally:
            await (file.aclose if isinstance(file, anyio.AsyncFile) else file.close)()

    async with (
        FaultServer([answer(503)]) as server,
        connected(server.url, close, retrying(SAFELY)) as session,
        opened(path) as file,
        session.put("/", data=file) as response,
    ):
        log = RequestLog.of(response)

    assert 503 == response.status
    assert RetryStopReason.BODY_NOT_REPLAYABLE is log.stop_reason
    assert 1 == len(server.requests)
