"""Listen to circuit breakers: state changes, counts, rejected requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .breaker import CircuitBreaker, CircuitState
    from .window import EventCount


class CircuitBreakerListener:
    """Hears what happens to a circuit breaker; override what you need.

    Methods are called one event after the other, once the circuit breaker has done
    with the event, so they may use it in turn. What they raise is logged.

    >>> class Bell(CircuitBreakerListener):
    ...     def on_state_changed(self, circuit_breaker, state):
    ...         print(circuit_breaker.name, "is", state)
    >>> breaker = CircuitBreaker("orders", listeners=[Bell()])
    >>> breaker.enter_state(CircuitState.FORCED_OPEN)
    orders is forced_open
    """

    def on_state_changed(
        self, circuit_breaker: CircuitBreaker, state: CircuitState
    ) -> None:
        """Hear that the circuit breaker went into another state."""

    def on_event_count_updated(
        self, circuit_breaker: CircuitBreaker, event_count: EventCount
    ) -> None:
        """Hear that an event was counted, or that counting begins afresh."""

    def on_request_rejected(self, circuit_breaker: CircuitBreaker) -> None:
        """Hear that the open circuit refused a request."""


News: TypeAlias = Callable[[CircuitBreakerListener], None]
