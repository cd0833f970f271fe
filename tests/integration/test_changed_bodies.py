"""A body that changed since it was sent goes out as it was, or not at all."""

import asyncio
import gc
import io
import threading
import weakref

import aiofiles
import aiohttp
import pytest
from calls import begin, call_of, close_bodies
from chains import SAFELY, connected, log_of, retrying
from fake_responses import Sink
from fault_server import End, Fault, FaultServer, Read, answer, cut, response
from streamed_bodies import upload

from aioretry_smithy import (
    HedgingClient,
    HttpRequest,
    LoggingClient,
    RequestLog,
    RetrySafety,
    RetryStopReason,
    client_decorator,
    retry_safety,
)
from aioretry_smithy._bodies.request_body import prepare

CONTENT = bytes(range(256)) * 1_000


def changing(change):
    """Make a decorator that changes something before the second attempt."""

    @client_decorator
    async def change_before(delegate, ctx, request):
        if ctx.attempt == 2:
            change()
        return await delegate.execute(ctx, request)

    return change_before


def overwrite(path, content):
    """Write into a file, in place."""
    with path.open("r+b") as file:
        file.truncate()
        file.write(content)


CHANGES = {
    "other first byte": b"X" + CONTENT[1:],
    "other last byte": CONTENT[:-1] + b"X",
    "shorter": CONTENT[:-1],
    "empty": b"",
}
every_change = pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)
either_framing = pytest.mark.parametrize("chunked", [None, True])


@every_change
@either_framing
async def test_file_that_changed_does_not_arrive(tmp_path, changed, chunked):
    """The request breaks off before a server takes it for whole."""
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    decorator = changing(lambda: overwrite(path, changed))
    with path.open("rb", buffering=0) as file:
        sent = await upload(
            [answer(503)], decorator, retrying(SAFELY), data=file, chunked=chunked
        )

    assert 503 == sent.answer[0]
    assert sent.is_not_replayable
    assert [CONTENT] == sent.bodies


@pytest.mark.parametrize(("chunked", "status"), [(None, 200), (True, 503)])
async def test_file_that_grew_is_sent_as_long_as_it_was(tmp_path, chunked, status):
    """A log, for instance; without a length nobody knows where it ended."""
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    decorator = changing(lambda: overwrite(path, CONTENT + b"more"))
    with path.open("rb") as file:
        sent = await upload(
            [answer(503)], decorator, retrying(SAFELY), data=file, chunked=chunked
        )

    assert status == sent.answer[0]
    assert sent.is_not_replayable is (status == 503)
    assert [CONTENT] * (2 if status == 200 else 1) == sent.bodies


async def test_another_failure_of_the_retry_is_that_of_the_call(tmp_path):
    """The answer before is the outcome only where the body was not what it had been."""
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    retries = retrying(SAFELY, max_total_attempts=2)
    faults = [cut(response(503), end=End.CLOSE), cut(end=End.RESET)]
    with path.open("rb") as file:
        sent = await upload(faults, retries, data=file)

    assert isinstance(sent.error, aiohttp.ClientOSError)
    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == sent.log.stop_reason


async def test_two_sends_at_once_take_turns():
    """A decorator that races two requests would have each read half of a file."""

    @client_decorator
    async def race(delegate, ctx, request):
        responses = await asyncio.gather(
            *(delegate.execute(ctx.derive(request), request) for _ in range(2))
        )
        responses[0].close()
        return responses[1]

    content = CONTENT * 8
    async with (
        FaultServer() as server,
        connected(server.url, race) as session,
        session.put("/", data=io.BytesIO(content), chunked=True) as response,
    ):
        log = RequestLog.of(response)

    assert [content] * 2 == server.bodies
    assert log.stop_reason is not RetryStopReason.BODY_NOT_REPLAYABLE


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_what_is_in_memory_takes_no_turns():
    """A hedge goes out while the first request is stuck in its upload."""
    stuck = Fault(Read.HEAD, (), End.STALL)
    hedging = HedgingClient.new_decorator(0.05)
    async with (
        asyncio.timeout(10.0),
        FaultServer([stuck]) as server,
        connected(server.url, hedging) as session,
        session.put("/", data=aiohttp.BytesPayload(CONTENT * 20)) as response,
    ):
        pass

    assert 200 == response.status
    assert [CONTENT * 20] == server.bodies


async def test_text_of_an_async_file_is_the_callers_mistake(tmp_path):
    """As it is to aiohttp, which sends bytes; no retry helps."""
    path = tmp_path / "file"
    path.write_text("text")
    async with aiofiles.open(path) as file:
        sent = await upload([], retrying(SAFELY), data=file)

    assert RetrySafety.NO is retry_safety(sent.error)
    assert 1 == sent.log.total_attempts
    assert [] == sent.bodies


async def test_read_that_a_cancelled_attempt_left_running_is_waited_for(tmp_path):
    """Otherwise it would move the file under the next attempt's feet."""
    entered, leave = threading.Event(), threading.Event()

    class Slow(io.BufferedReader):
        def read(self, size=-1):
            if not entered.is_set():
                entered.set()
                leave.wait(10)
            return super().read(size)

    (tmp_path / "file").write_bytes(b"0123456789")
    data = Slow(io.FileIO(tmp_path / "file"))
    request = HttpRequest("POST", "http://example.com/", data=data)
    ctx, sink = begin(request), Sink()
    attempt = asyncio.create_task(prepare(call_of(ctx), data).write(Sink()))
    await asyncio.to_thread(entered.wait, 10)
    attempt.cancel()
    await asyncio.wait([attempt])
    second = asyncio.create_task(prepare(call_of(ctx), data).write(sink))
    await asyncio.sleep(0.01)
    waiting = not second.done()
    leave.set()
    await second
    await close_bodies(ctx)
    data.close()

    assert waiting
    assert b"0123456789" == sink.sent


@pytest.mark.parametrize("decorators", [[], [retrying(SAFELY)]], ids=["once", "retry"])
async def test_changed_request_leaves_no_body(decorators):
    """Neither the log nor anything else keeps what a decorator has sent."""
    bodies = []

    class Body(bytearray):
        pass

    @client_decorator
    async def fill(delegate, ctx, request):
        body = Body(b"orders")
        bodies.append(weakref.ref(body))
        changed = request.replace(method="PUT", data=body)
        return await delegate.execute(ctx, changed)

    async with FaultServer([answer(200, b"fine")]) as server:
        log = await log_of(
            connected(server.url, fill, *decorators, LoggingClient.new_decorator()), "/"
        )
    gc.collect()

    assert [None] == [body() for body in bodies]
    assert "PUT" in log.render()
