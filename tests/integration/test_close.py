"""A session that is closed while a call waits for its next attempt, on loopback."""

from __future__ import annotations

import asyncio

import pytest
from chains import connected, retrying
from fault_server import FaultServer, answer
from until import until

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    RequestLog,
    RetryStrategy,
    capture_logs,
)

STRATEGY = RetryStrategy.failsafe(Backoff.fixed(60.0))


@pytest.mark.parametrize("headers", [(), ("Retry-After: 30",)])
async def test_backoff_ends_at_once(headers):
    """And the call with it, as a call of a closed session."""
    async with asyncio.timeout(20.0), FaultServer() as server:
        server.then = answer(503, b"", *headers)
        client = connected(server.url, retrying(STRATEGY))
        with capture_logs() as logs:
            task = asyncio.create_task(client.get("/orders"))
            # The delay is known when the wait begins.
            await until(lambda: logs and logs[0].children and logs[0].children[0].delay)
        await client.close()
        with pytest.raises(RuntimeError, match="Session is closed") as caught:
            await task

    log = RequestLog.of(caught.value)
    assert 2 == log.total_attempts
    assert log.children[0].delay < 10.0


async def test_wait_at_a_circuit_ends_at_once():
    """Also where the session's block is left while calls wait in it."""
    breaker = CircuitBreaker("orders", circuit_open_window=60.0)
    decorator = CircuitBreakerClient.new_decorator(breaker, wait_for_ready=60.0)
    async with asyncio.timeout(20.0), FaultServer() as server:
        async with connected(server.url, decorator, retrying(STRATEGY)) as client:
            breaker.enter_state(CircuitState.OPEN)
            tasks = [asyncio.create_task(client.get("/orders")) for _ in range(10)]
            await asyncio.sleep(0.05)
        failures = await asyncio.gather(*tasks, return_exceptions=True)

    assert {"RuntimeError('Session is closed')"} == set(map(repr, failures))
    assert CircuitState.OPEN is breaker.state
