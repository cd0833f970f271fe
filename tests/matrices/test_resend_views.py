"""What the log and telemetry say of a request that was sent again."""

from __future__ import annotations

import pytest
from chains import connected, retrying
from parity import warm
from pool_server import CLOSE, PoolServer

from aioretry_smithy import RequestLog, RetryStrategy

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
