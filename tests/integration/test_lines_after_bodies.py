"""With ``log_after="body"`` the lines come when the body has ended, or is dropped."""

import asyncio
import contextlib
import gc
import logging
import subprocess
import sys
import textwrap
import weakref

import aiohttp
import pytest
from chains import Always, retrying
from chains import connected as build
from lines_sink import USER, logged
from until import nothing_to_collect

from aioretry_smithy import (
    Backoff,
    ContentPreviewingClient,
    HedgingClient,
    LogFormatter,
    LoggingClient,
    RetryStrategy,
    client_decorator,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
HALF = HEAD + b"01234"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 10\r\n\r\n01234"
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\n01234"
SOON = RetryStrategy.failsafe(Backoff.fixed(0.01))


async def test_line_has_the_body(serve, lines):
    """It is written with the last byte: with the length, and the whole duration."""
    asked = asyncio.Event()
    url = await serve([HALF, asked, 0.05, b"56789"])
    async with build(url, logged()) as session, session.get("/") as response:
        assert [] == lines.logs
        asked.set()
        assert b"0123456789" == await response.read()

        ((length, duration, total, is_complete),) = lines.told(
            "response_length", "duration", "total_duration", "is_complete"
        )
        assert (10, True) == (length, is_complete)
        assert total >= duration + 0.04
    assert ["DEBUG"] == lines.levels


async def test_body_that_broke_is_a_failure(serve, lines):
    """Level and sampling go by what the log says then: failed, though it was a 200."""
    url = await serve([HALF, 0.02, None])
    settings = {
        "successful_response_log_level": logging.INFO,
        "failure_response_log_level": lambda log: (
            logging.ERROR if isinstance(log.response_cause, aiohttp.ClientError) else 1
        ),
        "success_sampling_rate": 0.0,
    }
    async with build(url, logged(**settings)) as session, session.get("/") as response:
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()
        ((status, cause, length),) = lines.told(
            "response_status", "response_cause", "response_length"
        )

    assert (200, 5) == (status, length)
    assert cause.startswith("ClientPayloadError")
    assert ["ERROR"] == lines.levels


async def test_body_that_runs_out_of_time_is_told_when_it_does(serve, lines):
    """Not only when the response is released, and then not once more."""
    url = await serve([HALF, 3600.0])
    in_time = retrying(SOON, attempt_timeout=0.5)
    async with (
        build(url, logged(), in_time, logged()) as session,
        session.get("/") as response,
    ):
        with pytest.raises(TimeoutError):
            await response.read()
        told = lines.told("type", "response_cause")

    said = "AttemptTimeoutError: attempt 1 had 0.500 s, which passed while its body was"
    said += " read (attempt_timeout=None for a stream)"
    assert [("attempt", said), ("call", said)] == told
    assert told == lines.told("type", "response_cause")


async def test_lines_of_attempts_go_by_their_status(serve, lines):
    """A body ends after the strategy was asked; its attempt has the level of a 200."""
    url = await serve([HALF, 3600.0])
    again = retrying(Always(), max_total_attempts=2)
    async with build(url, logged(), again, logged()) as session, session.get("/"):
        pass

    assert [
        ("attempt", False),
        ("attempt", False),
        ("call", False),
    ] == lines.told("type", "is_success")
    assert ["DEBUG", "DEBUG", "WARNING"] == lines.levels


async def test_attempts_that_are_given_up_are_told_before_the_wait(serve, lines):
    """Their body is released then; the one that counts is told with the call."""
    url = await serve([BUSY, 3600.0], [HALF, 0.05, b"56789"])
    told = []

    async def look():
        await lines.came.wait()
        told.extend(lines.told("type", "attempt", "response_status"))

    strategy = RetryStrategy.failsafe(Backoff.fixed(0.2))
    async with build(url, logged(), retrying(strategy), logged()) as session:
        looking = asyncio.create_task(look())
        async with session.get("/") as response:
            assert 1 == len(lines.logs)
            await response.read()
        await looking

    assert [("attempt", 1, 503)] == told
    assert [
        ("attempt", 1, 503, 5),
        ("attempt", 2, 200, 10),
        ("call", None, 200, 10),
    ] == lines.told("type", "attempt", "response_status", "response_length")


async def test_websocket_is_told_at_its_headers(echoing, lines):
    """A 101 is complete with them."""
    async with build(echoing, logged()) as session, session.ws_connect("/"):
        assert [(101, True)] == lines.told("response_status", "is_complete")

    assert 1 == len(lines.logs)


async def test_hedges_are_told_each_once(serve, lines):
    """The loser when it is given up, the winner when its body has ended."""
    url = await serve([3600.0], [HALF, 0.05, b"56789"])
    hedging = HedgingClient.new_decorator(0.05)
    async with (
        build(url, logged(), hedging, logged()) as session,
        session.get("/") as response,
    ):
        assert [(1, True)] == lines.told("attempt", "superseded")
        await response.read()

    assert [(1, True, None), (2, False, 10), (None, False, 10)] == lines.told(
        "attempt", "superseded", "response_length"
    )


async def test_line_has_the_whole_preview(serve, lines):
    """At the headers only a part of the body may have arrived."""
    head = HEAD.replace(b"\r\n\r\n", b"\r\nContent-Type: text/plain\r\n\r\n")
    url = await serve([head + b"01234", 0.05, b"56789"])
    previews = ContentPreviewingClient.new_decorator(100)
    async with build(url, previews, logged()) as session, session.get("/") as response:
        await response.read()

    assert [("0123456789",)] == lines.told("response_content_preview")


async def test_lines_are_written_in_the_context_of_the_call(serve, lines):
    """Otherwise aiohttp ends a body in that of whatever opened the connection."""
    url = await serve([HEAD + b"0123456789"], [HALF, 0.05, b"56789"])

    async def call(user):
        USER.set(user)
        async with session.get("/") as response:
            return await response.read()

    connector = aiohttp.TCPConnector(limit=1)
    async with build(url, logged(), connector=connector) as session:
        for user in "first", "second":
            await asyncio.create_task(call(user))

    assert ["first", "second"] == lines.users


async def test_decorator_that_sends_twice_is_told_twice(serve, lines):
    """Around the logging client: each request that it sees is one line."""

    @client_decorator
    async def again(delegate, ctx, request):
        (await delegate.execute(ctx, request)).close()
        return await delegate.execute(ctx, request)

    url = await serve([MISSING, 3600.0], [HALF, 0.05, b"56789"])
    async with build(url, logged(), again) as session, session.get("/") as response:
        assert [(404,)] == lines.told("response_status")
        await response.read()

    assert [(404, None), (200, 10)] == [
        (status, length if status == 200 else None)
        for status, length in lines.told("response_status", "response_length")
    ]


@pytest.mark.parametrize("inside", [(), (retrying(SOON),)], ids=["plain", "retries"])
async def test_answer_that_is_left_open_for_another_one(serve, lines, inside):
    """It is told before the other one takes its place, which is told for itself."""

    @client_decorator
    async def again(delegate, ctx, request):
        first = await delegate.execute(ctx, request)
        second = await delegate.execute(ctx, request)
        first.close()
        return second

    url = await serve([MISSING, 3600.0], [HALF, 0.05, b"56789"])
    async with (
        build(url, *inside, logged(), again) as session,
        session.get("/") as response,
    ):
        await response.read()

    assert [(404, False), (200, True)] == lines.told("response_status", "is_complete")
    assert ["WARNING", "DEBUG"] == lines.levels


async def test_response_that_a_decorator_replaces(serve, lines):
    """Its line says what became of the call, and comes once."""

    @client_decorator
    async def refuse(delegate, ctx, request):
        (await delegate.execute(ctx, request)).release()
        raise ValueError("not what we wanted")

    url = await serve([HALF, 3600.0])
    async with build(url, logged(), refuse) as session:
        with pytest.raises(ValueError, match="not what we wanted"):
            await session.get("/")

    assert [(200, None)] == lines.told("response_status", "response_cause")


async def test_error_of_a_formatter_leaves_the_body_alone(serve, caplog):
    """It is reported once, as ever, and the reader hears nothing of it."""

    class Broken(LogFormatter):
        def format_request(self, log):
            return None

        def format_response(self, log):
            raise KeyError("a bug of the formatter")

    url = await serve([HALF, 0.02, b"56789"])
    decorator = LoggingClient.new_decorator(
        logging.getLogger("shop"), formatter=Broken(), log_after="body"
    )
    caplog.set_level(logging.DEBUG, "shop")
    async with build(url, decorator) as session:
        for _ in range(2):
            async with session.get("/") as response:
                assert b"0123456789" == await response.read()

    said = "could not log a call; further errors are not reported"
    assert [said] == [
        record.message for record in caplog.records if record.levelname == "ERROR"
    ]


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
