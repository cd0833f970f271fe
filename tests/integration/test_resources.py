"""Nothing is left open, also where code of users is cut off."""

import asyncio
import collections
import contextlib
import gc
import io
import itertools
import time
import warnings

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import SAFELY, connected, pass_on, retrying
from fault_server import End, Fault, FaultServer, Read, answer, cut, early, response

from aioretry_smithy import (
    RequestLog,
    ResponseTimeoutError,
    RetryStopReason,
    capture_logs,
    client_decorator,
)
from aioretry_smithy._call.record import Upload

MEGABYTES = b"x" * (4 << 20)
PART = response(503, b"x" * 1000)[:500]


def build(server, *, delay=0.0, settings=None, **options):
    return connected(server.url, retrying(delay, **(settings or {})), **options)


@contextlib.contextmanager
def nothing_reported():
    """Fail where anything is said of what was left unclosed or not awaited."""
    loop, reports = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda loop, context: reports.append(context))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
        gc.collect()

    assert [] == reports
    assert [] == [str(warning.message) for warning in caught]


@pytest.mark.slow
@pytest.mark.parametrize("end", [End.KEEP, End.CLOSE, End.RESET])
async def test_pool_of_one_survives_large_errors(end):
    """Megabytes of error body do not keep the only connection from the next attempt."""
    faults = [Fault(send=(response(503, MEGABYTES),), end=end)] * 3
    connector = aiohttp.TCPConnector(limit=1)
    with nothing_reported():
        async with (
            FaultServer(faults) as server,
            build(server, connector=connector) as session,
            asyncio.timeout(5.0),
            session.get("/") as got,
        ):
            assert 200 == got.status
            assert 4 == len(server.requests)
        assert not connector._acquired


SCENARIOS = {
    "works": [],
    "error": [answer(503, b"sorry")] * 2,
    "errors to the end": [answer(503, MEGABYTES)] * 3,
    "early": [early(503)] * 2,
    "reset": [cut(end=End.RESET)] * 3,
    "reset in the upload": [cut(read=1 << 16, end=End.RESET)] * 3,
    "closed": [cut(end=End.CLOSE)] * 3,
    "error is cut": [cut(PART, end=End.CLOSE)] * 3,
    "error is reset": [cut(PART, end=End.RESET)] * 3,
    "error stalls": [Fault(send=(PART,), end=End.STALL)] * 3,
    "stalls": [Fault(Read.HEAD, (), End.STALL)] * 3,
    "garbage": [Fault(send=(b"what?\r\n\r\n",), end=End.CLOSE)] * 3,
}


async def is_closed(file):
    """Wait for the thread in which aiohttp closes files."""
    for _ in range(20):
        if file.closed:
            break
        await asyncio.sleep(0.005)
    return file.closed


async def send_alone(faults, path):
    """Return a file after aiohttp alone has sent it: some failures leave it open."""
    limits = ClientTimeout(total=0.4)
    async with FaultServer(faults) as server, aiohttp.ClientSession() as session:
        file = path.open("rb")
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with session.post(server.url, data=file, timeout=limits):
                pass
    return file


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_nothing_stays_behind(scenario, tmp_path):
    """No connection, task, open file or warning after any scenario."""
    path = tmp_path / "body"
    path.write_bytes(bytes(1 << 20))
    settings = {"max_total_attempts": 3, "attempt_timeout": 0.4}
    with nothing_reported():
        async with (
            FaultServer(SCENARIOS[scenario]) as server,
            build(server, settings=settings) as session,
        ):
            alone = await send_alone(SCENARIOS[scenario][2:], path)
            with (
                contextlib.closing(alone),
                path.open("rb") as file,
                capture_logs() as logs,
            ):
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    async with session.put("/", data=file):
                        pass
                assert await is_closed(file) is await is_closed(alone)
            assert not session.connector._acquired
            assert len(server.requests) == logs[0].total_attempts
            assert logs[0].is_complete


def objects():
    """Count what is alive, by type."""
    for _ in range(3):
        gc.collect()
    return collections.Counter(type(thing) for thing in gc.get_objects())


async def fail(session, count):
    for number in range(count):
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            body = (None, b"abc", io.BytesIO(b"abc"))[number % 3]
            async with session.put("/", data=body):
                pass


IN_CANCELLED_TIMERS = {Upload: 100}
"""asyncio keeps up to a hundred, each with the context that it was made in."""


@pytest.mark.slow
async def test_memory_is_flat():
    """A thousand failing calls leave nothing that the first hundred had not."""
    kinds = [answer(503, b"x" * 100), cut(end=End.CLOSE), cut(PART, end=End.RESET)]
    settings = {"max_total_attempts": 2}
    async with (
        FaultServer(itertools.cycle(kinds)) as server,
        build(server, settings=settings) as session,
    ):
        await fail(session, 100)
        server.requests.clear()
        before = objects()
        await fail(session, 1000)
        # The server breaks each reused connection, and the transport sends again.
        assert 3000 == len(server.requests)
        server.requests.clear()
        for _ in range(100):
            growth = objects() - before
            ours = {
                kind
                for kind, more in growth.items()
                if kind.__module__.startswith("aioretry_smithy")
                and more > IN_CANCELLED_TIMERS.get(kind, 0)
            }
            if not ours:
                break
            # The last connection is still being closed on a busy machine.
            await asyncio.sleep(0.01)

    assert set() == ours
    assert {} == {kind: more for kind, more in growth.items() if more > 500}


async def chunks(count):
    for _ in range(count):
        yield bytes(1 << 12)


BODIES = {
    "file": lambda path: path.open("rb"),
    "BytesIO": lambda path: io.BytesIO(path.read_bytes()),
    "stream": lambda path: chunks(20),
    "multipart": lambda path: {"a": "1", "b": path.open("rb")},
}


async def turns(count):
    for _ in range(count):
        await asyncio.sleep(0)


async def cancel_after(count, server, path, kind):
    """Cancel a call after so many turns of the loop; say whether it was under way."""
    body = BODIES[kind](path)
    with capture_logs() as logs:
        async with build(server, delay=0.0001) as session:
            task = asyncio.create_task(session.put("/", data=body))
            await turns(count)
            was_cancelled = task.cancel()
            results = await asyncio.gather(task, return_exceptions=True)
            if isinstance(results[0], asyncio.CancelledError):
                assert not session.connector._acquired
            else:
                was_cancelled = False
                results[0].close()
    for file in body.values() if isinstance(body, dict) else (body,):
        if hasattr(file, "close"):
            file.close()
    for log in logs:
        assert log.is_complete
        if was_cancelled:
            assert RetryStopReason.CANCELLED == log.stop_reason
            assert isinstance(log.response_cause, asyncio.CancelledError)
    return was_cancelled


@pytest.mark.slow
@pytest.mark.parametrize("kind", BODIES)
async def test_cancelled_at_every_await(kind, tmp_path):
    """Wherever it is cancelled, a call ends at once and leaves nothing behind."""
    path = tmp_path / "body"
    path.write_bytes(bytes(80 << 10))
    faults = itertools.cycle([answer(503, b"x" * 100), answer(503), answer(200)])
    cancelled = 0
    with nothing_reported():
        for count in itertools.count():
            async with FaultServer(faults) as server:
                if not await cancel_after(count, server, path, kind):
                    break
            cancelled += 1
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left

    assert cancelled >= 5


SILENT = [60.0]
GOOD = [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"]
LATE = aiohttp.ClientTimeout(total=0.3)


def limits_in(log):
    return [type(each.response_cause) for each in log.children]


async def test_request_that_is_under_way_names_the_limit_itself(serve):
    """It ends first, also where the loop was held up when both were due."""
    url = await serve(SILENT)
    with capture_logs() as logs:
        async with connected(
            url, pass_on, retrying(SAFELY), pass_on, timeout=LATE
        ) as session:
            loop = asyncio.get_running_loop()
            for held_up in (0.0, 0.2):
                loop.call_later(0.2, time.sleep, held_up)
                with pytest.raises(ResponseTimeoutError):
                    await session.get("")

    assert [[ResponseTimeoutError]] * 2 == [*map(limits_in, logs)]
    assert ["deadline"] * 2 == [str(log.stop_reason) for log in logs]


async def test_busy_machine_does_not_cut_what_comes_up_from_a_limit(serve):
    """Each turn of the loop may take long: other processes have the processor."""

    @client_decorator
    async def look_up(delegate, ctx, request):
        try:
            return await delegate.execute(ctx, request)
        except ResponseTimeoutError:
            for _ in range(10):
                asyncio.get_running_loop().call_soon(time.sleep, 0.003)
                await asyncio.sleep(0)
            raise LookupError("nothing kept") from None

    url = await serve(SILENT)
    async with connected(url, pass_on, look_up, timeout=LATE) as session:
        with pytest.raises(LookupError, match="nothing kept"):
            await session.get("")


@pytest.mark.slow
async def test_loop_whose_turns_are_all_long_cuts(serve):
    """Its timers are never on time, and the deadline is kept all the same."""

    async def keep_busy():
        while True:
            time.sleep(0.03)  # noqa: ASYNC251
            await asyncio.sleep(0)

    @client_decorator
    async def hang(delegate, ctx, request):
        await asyncio.sleep(60.0)

    url = await serve()
    async with connected(url, hang, timeout=aiohttp.ClientTimeout(total=0.1)) as client:
        busy = asyncio.create_task(keep_busy())
        try:
            async with asyncio.timeout(5.0):
                with pytest.raises(ResponseTimeoutError):
                    await client.get("")
        finally:
            busy.cancel()


async def test_answer_in_the_hands_of_what_is_cut_is_closed(serve):
    """No connection is left; the next call works."""
    seconds = iter([60.0, 0.0])

    @client_decorator
    async def look(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        await asyncio.sleep(next(seconds))
        return response

    url = await serve([GOOD[0][:-2], 60.0], GOOD)
    async with connected(url, look, retrying(SAFELY), pass_on) as session:
        with pytest.raises(ResponseTimeoutError) as caught:
            await session.get("", timeout=LATE)
        assert not session.connector._acquired
        async with session.get("") as response:
            assert b"good" == await response.read()

    assert "deadline" == str(RequestLog.of(caught.value).stop_reason)
    assert 0 == asyncio.current_task().cancelling()


async def test_many_calls_at_once_are_cut_each_by_itself(serve):
    """And a task that has several of them one after the other."""

    @client_decorator
    async def slow(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        await asyncio.sleep(ctx.request.options["trace_request_ctx"])
        return response

    url = await serve(GOOD)
    async with connected(url, slow, retrying(SAFELY), timeout=LATE) as session:

        async def call(seconds):
            try:
                async with session.get("", trace_request_ctx=seconds) as response:
                    return response.status
            except ResponseTimeoutError:
                return None

        results = await asyncio.gather(*map(call, [0.0, 60.0] * 20))
        again = [await call(seconds) for seconds in (60.0, 0.0)]

    assert [200, None] * 20 == results
    assert [None, 200] == again
