"""What the log and telemetry say of a request that was sent again."""

from __future__ import annotations

import asyncio
import re

import aiohttp
import pytest
from chains import connected, notes_of, retrying
from parity import warm
from pool_server import CLOSE, PoolServer

from aioretry_smithy import HedgingClient, RequestLog, RetryStrategy

NEVER = retrying(RetryStrategy.never())


@pytest.fixture
async def server():
    async with PoolServer() as running:
        yield running


async def log_after_a_resend(server, *decorators, path="/orders"):
    """Make a call that meets a stale connection, and return its log."""
    async with connected(server.url, *decorators) as session:
        await warm(server, session, 1)
        server.leave_stale(CLOSE)
        async with session.get(path) as response:
            await response.read()
    return RequestLog.of(response)


def without_times(text):
    return re.sub(r"\d+\.\d{3} s", "T", re.sub(r":\d{4,5}/", "/", text))


async def test_tree_says_that_it_was_sent_again(server):
    """In the row of the request whose connection was broken."""
    log = await log_after_a_resend(server, NEVER)

    first, second = without_times(log.render()).splitlines()[1:]
    assert "├─ 1  ServerDisconnectedError: Server disconnected" in first

    assert first.endswith("T   then sent again (stale_connection)")

    assert second.startswith("└─ 2  200 Status")


async def test_picture_shows_no_wait(server, tmp_path):
    """Sent again at once, it waited for nothing."""
    log = await log_after_a_resend(server, NEVER)
    log.to_svg(tmp_path / "call.svg")
    drawn = (tmp_path / "call.svg").read_text(encoding="utf-8")

    assert "then sent again (stale_connection)" in drawn

    assert 'class="wait"' not in drawn


async def test_notes_of_a_failure_tell_of_it(server):
    """The exception of a call that failed in the end has a line for each request."""
    async with connected(server.url, NEVER) as session:
        await warm(server, session, 1)
        server.scripts["/orders"] = [CLOSE, CLOSE]
        with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
            await session.get("/orders")

    first, second = map(without_times, notes_of(caught.value))
    assert (
        "attempt 1: ServerDisconnectedError: Server disconnected, T, "
        "then sent again (stale_connection)" == first
    )

    assert "attempt 2: ServerDisconnectedError: Server disconnected, T" == second


async def test_hedge_that_is_sent_again_is_one_hedge(server):
    """Both its requests are marked, and the first one lost the race."""
    hedging = HedgingClient.new_decorator(0.02)
    async with connected(server.url, hedging) as session:
        await warm(server, session, 2)
        with server.holding():
            before = server.processed
            call = asyncio.create_task(session.get("/slow"))
            await server.arrived(before + 1)
            # The first request has one connection, its hedge gets the other.
            server.leave_stale(CLOSE)
            await server.arrived(before + 3)
        response = await call
        await response.read()
    log = RequestLog.of(response)

    assert [None, "stale_connection", None] == [
        each.delay_source for each in log.children
    ]

    assert [False, True, True] == [each.is_hedge for each in log.children]

    assert 3 == log.total_attempts


async def test_span_of_the_call_counts_one_attempt_and_has_an_event(server):
    """What is sent again is no attempt, but one can see when it happened."""
    pytest.importorskip("opentelemetry.sdk")
    from heard import Heard  # noqa: PLC0415

    heard = Heard()
    await log_after_a_resend(server, heard.decorator(), NEVER, heard.decorator())
    call, (*_, attempt) = heard.spans()[-2], heard.attempts

    assert 1 == call.attributes["aioretry_smithy.attempts"]

    assert [("aioretry_smithy.resend", {"aioretry_smithy.attempt": 1})] == [
        (event.name, dict(event.attributes)) for event in call.events
    ]

    assert "http.request.resend_count" not in attempt.attributes
