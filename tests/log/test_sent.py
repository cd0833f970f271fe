"""Requests that were never sent say so, and others do not."""

from __future__ import annotations

import pytest
from chains import log_of, refused, session

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    LogFormatter,
    RetryingClient,
    RetryStrategy,
    UnprocessedRequestError,
    client_decorator,
    new_response,
)

RETRYING = RetryingClient.new_decorator(
    RetryStrategy.on_unprocessed(Backoff.fixed(0.5)), max_total_attempts=2
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
    log = await log_of(session(answers, *decorators))
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
    log = await log_of(session(answers, *decorators))

    assert log.sent
    assert "sent" not in log.render()
    assert "sent=" not in LogFormatter.text().format_response(log)


async def test_call_was_sent_if_any_attempt_was():
    """One attempt is enough, whatever became of the others."""
    log = await log_of(session([refused(), 200], RETRYING))

    assert [True, False, True] == [each.sent for each in (log, *log.children)]
    assert ", 2 attempts" in log.render().splitlines()[0]


async def test_call_under_way_does_not_say_that_it_was_not_sent():
    """Nobody knows yet."""
    lines = []

    @client_decorator
    async def look(delegate, ctx, request):
        lines.append(ctx.log.render())
        return await delegate.execute(ctx, request)

    await log_of(session([200], look))

    assert ["GET http://localhost/orders  ->  no response yet"] == lines
