"""Lines of bodies that nobody reads to their ends."""

import asyncio
import contextlib
import gc
import subprocess
import sys
import textwrap
import weakref

import pytest
from chains import connected as build
from chains import retrying
from lines_sink import logged
from until import nothing_to_collect

from aioretry_smithy import Backoff, RetryStrategy, client_decorator

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
HALF = HEAD + b"01234"
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\n01234"
SOON = RetryStrategy.failsafe(Backoff.fixed(0.01))


async def leave(response):
    async with response:
        pass


async def release(response):
    response.release()


async def close(response):
    response.close()


async def cancelled(response):
    task = asyncio.create_task(response.read())
    await asyncio.sleep(0.02)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("finish", [leave, release, close, cancelled])
async def test_body_that_is_not_read_is_told_when_it_is_released(serve, lines, finish):
    """By the end of a block, or by hand; it is no failure."""
    url = await serve([HALF, 3600.0])
    async with build(url, logged()) as session:
        response = await session.get("/")
        assert [] == lines.logs
        await finish(response)

        assert [(True, None)] == lines.told("is_complete", "response_cause")
    assert ["DEBUG"] == lines.levels


@pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning")
async def test_response_that_is_dropped_is_told_when_it_is_collected(serve, lines):
    """Nobody will read it any more, so that counts as its release."""
    gone = asyncio.Event()
    url = await serve([HALF, gone, None])
    async with build(url, logged()) as session:
        response = await session.get("/")
        freed = weakref.ref(response)
        del response
        assert [] == lines.logs
        # As long as it has a connection, aiohttp keeps it.
        gone.set()
        for _ in range(100):
            await asyncio.sleep(0.01)
            gc.collect()
            if freed() is None:
                break

        assert [(200, True)] == lines.told("response_status", "is_complete")


async def test_rest_of_a_dropped_response_may_come_yet(serve, lines):
    """A server that goes on sending keeps it; the line comes with the last byte."""
    dropped = asyncio.Event()
    url = await serve([HALF, dropped, b"56789"])
    async with build(url, logged()) as session:
        await session.get("/")
        assert [] == lines.logs
        dropped.set()
        await lines.came.wait()

        assert [(10,)] == lines.told("response_length")


async def test_call_that_is_cancelled_with_an_answer_in_hand(serve, lines):
    """A decorator around has not handed it over yet: it is closed, and told then."""
    answered = asyncio.Event()

    @client_decorator
    async def dawdle(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        answered.set()
        await asyncio.sleep(3600.0)
        return response

    url = await serve([HALF, 3600.0])
    async with build(url, logged(), dawdle) as session:
        task = asyncio.create_task(session.get("/"))
        await answered.wait()
        assert [] == lines.logs
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert 1 == len(lines.logs)


async def read(response):
    await response.read()


@pytest.mark.parametrize("start", [HALF, MISSING], ids=["answer", "failure"])
async def test_nothing_is_left_to_collect(serve, lines, start):
    """No cycle runs through a call that is over."""
    url = await serve([start, 0.02, b"56789"])

    async def call():
        async with session.get("/") as response:
            await response.read()

    async with build(url, logged(), retrying(SOON), logged()) as session:
        await call()
        with nothing_to_collect():
            await call()


async def test_unread_body_of_a_closed_session(serve, lines):
    """It is told when the response goes."""
    url = await serve([HALF, 3600.0])
    async with build(url, logged()) as session:
        response = await session.get("/")
    await asyncio.sleep(0)
    assert [] == lines.logs
    response.release()

    assert [(200, True)] == lines.told("response_status", "is_complete")


async def test_nothing_is_written_when_the_interpreter_goes(serve, lines, monkeypatch):
    """Handlers may have lost by then what they need."""
    url = await serve([HALF, 3600.0])
    async with build(url, logged()) as session:
        response = await session.get("/")
        with monkeypatch.context() as patch:
            patch.setattr(sys, "is_finalizing", lambda: True)
            response.release()

    assert [] == lines.logs


PROGRAM = """
import asyncio, gc, logging, sys
from aioretry_smithy import LogFormatter, LoggingClient, SessionBuilder

logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.DEBUG)
logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it tells of slow machines
LINES = LoggingClient.new_decorator(formatter=LogFormatter.tree(), log_after="body")
kept = []

async def main():
    async with SessionBuilder(sys.argv[1]).decorator(LINES).build() as session:
        kept.append(await session.get("/"))

asyncio.run(main())
"""
DROPPED = "kept.clear()\ngc.collect()\nprint('dropped')"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "written"), [(DROPPED, ["GET", "dropped"]), ("", [])], ids=["loop", "exit"]
)
async def test_unread_body_outlives_its_loop(serve, end, written):
    """After the loop it is told all the same; at exit nothing goes wrong."""
    url = await serve([HALF, 3600.0])
    command = [sys.executable, "-X", "dev", "-W", "error", "-c"]
    process = await asyncio.create_subprocess_exec(
        *command,
        textwrap.dedent(PROGRAM) + end,
        url,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, errors = await process.communicate()

    assert 0 == process.returncode
    assert written == [line.split()[0] for line in output.decode().splitlines()]
    assert "aioretry_smithy" not in errors.decode()
