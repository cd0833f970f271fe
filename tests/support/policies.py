"""Clients of one server: the standard chain, the same but for a part, and none."""

from __future__ import annotations

from typing import Any

from one_server import PATIENCE, URL_OF_IT, Client, client_of

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    RetryBudget,
    SessionBuilder,
)


def standard(patience: float = PATIENCE, **settings: Any) -> Client:
    """Make the standard chain."""

    def chain() -> SessionBuilder:
        return SessionBuilder.standard(
            URL_OF_IT, attempt_timeout=patience, logging=None, **settings
        )

    return client_of(chain)


def no_retries(patience: float = PATIENCE) -> Client:
    return client_of(lambda: SessionBuilder(URL_OF_IT).response_timeout(patience))


def changed(
    *,
    wait_for_ready: float | None = 5.0,
    unserved_cost: float = 0.1,
    consecutive_failures: int | None = 5,
    failure_rate_threshold: float = 1.0,
    multiplier: float = 1.5,
) -> Client:
    """Make a chain with the parts of the standard one, each as written here."""
    window = Backoff.exponential(0.1, 5.0, multiplier).with_jitter(-0.2, 0.0)

    def breaker(host: str) -> CircuitBreaker:
        return CircuitBreaker(
            host,
            failure_rate_threshold=failure_rate_threshold,
            consecutive_failures=consecutive_failures,
            circuit_open_window=window,
            counter_sliding_window=10.0,
        )

    def chain() -> SessionBuilder:
        return SessionBuilder.standard(
            URL_OF_IT,
            logging=None,
            limiter=RetryBudget.per_host(unserved_cost=unserved_cost),
            circuit_breaker=CircuitBreakerClient.new_per_host_decorator(
                breaker,
                CircuitBreakerStrategy.on_server_error_status(count_throttling=False),
                wait_for_ready=wait_for_ready,
            ),
        )

    return client_of(chain)
