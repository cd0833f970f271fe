"""With ``log_after="body"`` the lines come when the body has ended, however it ends."""

import asyncio
import logging

import aiohttp
import pytest
from chains import Always, retrying
from chains import connected as build
from lines_sink import USER, logged

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
    async with (
        build(url, logged(**settings)) as session,
        session.get("/") as response,
    ):
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
