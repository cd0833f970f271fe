"""What was never sent says so, and what was is measured."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import pytest

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    FailFastError,
    LogFormatter,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    UnprocessedRequestError,
    capture_logs,
    client_decorator,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport

RETRYING = RetryingClient.new_decorator(
    RetryStrategy.on_unprocessed(Backoff.fixed(0.5)), max_total_attempts=2
)


def refused():
    key = aiohttp.client_reqrep.ConnectionKey(
        "orders.example.com", 443, True, True, None, None, None
    )
    return aiohttp.ClientConnectorError(
        key, OSError(111, "Connect call failed ('192.0.2.1', 443)")
    )


@client_decorator
async def cached(delegate, ctx, request):
    return new_response(request, body=b"cached")


def open_breaker(**settings):
    breaker = CircuitBreaker("orders")
    breaker.enter_state(CircuitState.FORCED_OPEN)
    return CircuitBreakerClient.new_decorator(breaker, **settings)


def fallback(ctx, request):
    return new_response(request, body=b"fallback")


async def log_of(*decorators, answers=(200,)):
    """Make a call and return its log."""
    builder = SessionBuilder("http://example.com")
    for decorator in ScriptedTransport(answers), *decorators:
        builder.decorator(decorator)
    with capture_logs() as logs:
        async with builder.build() as session:
            with suppress(aiohttp.ClientError, TimeoutError):
                await session.get("/")
    return logs[0]


@pytest.mark.parametrize(
    ("decorators", "answers"),
    [
        pytest.param([cached], [], id="cached"),
        pytest.param([open_breaker(fallback=fallback)], [], id="fallback"),
        pytest.param([open_breaker()], [], id="open circuit"),
        pytest.param([open_breaker(), RETRYING], [], id="open circuit, retried"),
        pytest.param([], [refused()], id="refused"),
        pytest.param([RETRYING], [refused(), refused()], id="refused twice"),
        pytest.param([], [UnprocessedRequestError("full")], id="turned away"),
    ],
)
async def test_what_was_never_sent(decorators, answers):
    """The log and each of its views say that no server has seen the call."""
    log = await log_of(*decorators, answers=answers)
    headline, *rows = log.render().splitlines()

    assert not log.sent
    assert log.to_dict()["sent"] is False
    assert ", not sent" in headline
    assert "1 attempt" not in headline
    assert all(", not sent" in row for row in rows)
    assert ", sent=no" in LogFormatter.text().format_response(log)


@pytest.mark.parametrize("answers", [[200], [503], [TimeoutError()]])
@pytest.mark.parametrize("decorators", [[], [RETRYING]], ids=["plain", "retrying"])
async def test_what_was_sent(decorators, answers):
    """An answer and a failure under way say that a server may know of the call."""
    log = await log_of(*decorators, answers=answers)

    assert log.sent
    assert "sent" not in log.render()
    assert "sent=" not in LogFormatter.text().format_response(log)


async def test_call_was_sent_if_any_attempt_was():
    """One attempt is enough, whatever became of the others."""
    log = await log_of(RETRYING, answers=[refused(), 200])

    assert [True, False, True] == [each.sent for each in (log, *log.children)]
    assert ", 2 attempts" in log.render().splitlines()[0]


async def test_call_under_way_does_not_say_that_it_was_not_sent():
    """Nobody knows yet."""
    lines = []

    @client_decorator
    async def look(delegate, ctx, request):
        lines.append(ctx.log.render())
        return await delegate.execute(ctx, request)

    await log_of(look)

    assert ["GET http://example.com/  ->  no response yet"] == lines


async def test_headline_says_nothing_twice():
    """No time beside a time, and none at all for a call that took none."""
    breaker = CircuitBreaker("orders", circuit_open_window=2.0)
    breaker.enter_state(CircuitState.OPEN)
    log = await log_of(CircuitBreakerClient.new_decorator(breaker))

    assert isinstance(log.response_cause, FailFastError)
    assert log.render().endswith("next trial in 2.000 s, not sent")


async def test_status_and_exception_do_not_repeat_each_other():
    """What raise_for_status says is the status."""
    builder = SessionBuilder("http://example.com", raise_for_status=True)
    builder.decorator(ScriptedTransport([404]))
    async with builder.build() as session:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await session.get("/")

    assert (
        "GET http://example.com/  ->  404 Not Found, ClientResponseError  in 0.000 s"
        == RequestLog.of(caught.value).render()
    )


async def test_message_of_ones_own_stands_beside_the_status():
    """What somebody's raise_for_status says beyond the status is kept."""

    async def refuse(response):
        raise aiohttp.ClientResponseError(
            response.request_info, (), status=404, message="no such order"
        )

    builder = SessionBuilder("http://example.com", raise_for_status=refuse)
    builder.decorator(ScriptedTransport([404]))
    async with builder.build() as session:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await session.get("/")
    said = "404 Not Found, ClientResponseError: no such order"

    assert said in RequestLog.of(caught.value).render()


async def test_reason_of_a_connection_error_is_not_cut():
    """What goes is the middle, which the beginning of the line says again."""
    log = await log_of(answers=[refused()])
    _, _, said = log.render().partition("  ->  ")

    assert said.startswith("ClientConnectorError: Cannot…")
    assert said.endswith("Connect call failed ('192.0.2.1', 443)], not sent")


async def test_time_after_a_time():
    """A failure that ends with seconds is set off from those of the call."""
    retrying = RetryingClient.new_decorator(
        RetryStrategy.failsafe(Backoff.fixed(0.5)),
        attempt_timeout=1.0,
        max_total_attempts=2,
    )

    async def silence(ctx, request):
        await asyncio.sleep(9)

    log = await log_of(retrying, answers=[silence, silence])

    assert "attempt 2 had 1.000 s  after 2.500 s, 2 attempts" in log.render()
