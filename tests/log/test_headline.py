"""The first line of a log says how a call ended, and nothing twice."""

from __future__ import annotations

import aiohttp
from chains import log_of, refused, retrying, session, silence

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    FailFastError,
)


async def test_headline_says_nothing_twice():
    """No time beside a time, and none at all for a call that took none."""
    breaker = CircuitBreaker("orders", circuit_open_window=2.0)
    breaker.enter_state(CircuitState.OPEN)
    log = await log_of(session([], CircuitBreakerClient.new_decorator(breaker)))

    assert isinstance(log.response_cause, FailFastError)
    assert log.render().endswith("next trial in 2.000 s, not sent")


async def test_status_and_exception_do_not_repeat_each_other():
    """The message of raise_for_status is left out: it is the status."""
    log = await log_of(session([404]), "http://h/", raise_for_status=True)

    assert "GET http://h/  ->  404 Not Found, ClientResponseError  in 0.000 s" == (
        log.render()
    )


async def test_message_of_ones_own_stands_beside_the_status():
    """The words that a raise_for_status adds to the status are kept."""

    async def refuse(response):
        raise aiohttp.ClientResponseError(
            response.request_info, (), status=404, message="no such order"
        )

    log = await log_of(session([404]), raise_for_status=refuse)

    assert "404 Not Found, ClientResponseError: no such order" in log.render()


async def test_reason_of_a_connection_error_is_not_cut():
    """The middle goes, which the beginning of the line says again."""
    log = await log_of(session([refused()]))
    _, _, said = log.render().partition("  ->  ")

    assert said.startswith("ClientConnectorError: Cannot…")
    assert said.endswith("Connect call failed ('192.0.2.1', 443)], not sent")


async def test_time_after_a_time():
    """A failure that ends with seconds is set off from those of the call."""
    decorator = retrying(attempt_timeout=1.0, max_total_attempts=2)
    log = await log_of(session([silence] * 2, decorator))

    assert "attempt 2 had 1.000 s  after 2.500 s, 2 attempts" in log.render()
