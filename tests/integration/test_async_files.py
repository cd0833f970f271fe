"""Files of aiofiles and anyio are sent again from the position that they had."""

import asyncio
import threading
from contextlib import asynccontextmanager

import aiofiles
import aiofiles.tempfile
import aiohttp
import anyio
import pytest
from chains import SAFELY, connected, retrying
from fault_server import End, FaultServer, answer, cut
from streamed_bodies import Progress, fetch_token, multipart

from aioretry_smithy import (
    RefreshingClient,
    RequestLog,
    RetryStopReason,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
)

CONTENT = b"".join(b"%d\n" % number for number in range(40))
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
    path.write_bytes(CONTENT)
    return path


def form(value):
    data = aiohttp.FormData()
    data.add_field("file", value, filename="lines", content_type="text/plain")
    return data


WITHIN = {
    "alone": lambda file: file,
    "in a form": form,
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
    assert CONTENT[offset:] in first
    assert offset == 0 or CONTENT not in first


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

    assert [CONTENT] * 2 == server.bodies[1:]
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
    assert [CONTENT] * 2 == server.bodies


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

    assert [CONTENT] == server.bodies
    assert 2 == log.total_attempts


@every_library
async def test_nothing_is_left_of_a_cancelled_call(path, opened):
    """Who reads for it is let go of."""
    async with (
        FaultServer() as server,
        connected(server.url, retrying()) as session,
        opened(path) as file,
    ):
        thread, others = stuck(file), asyncio.all_tasks()
        await thread.given_up_by(session.put("/", data=file))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        names = [task.get_coro().__qualname__ for task in asyncio.all_tasks() - others]
        thread.goes_on.set()

    assert [] == [name for name in names if "FaultServer" not in name]
    assert [] == server.bodies


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
    assert [CONTENT] == server.bodies
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
