"""Who hears what happens to a circuit breaker."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from .._errors import bad_argument

if TYPE_CHECKING:
    from .breaker import CircuitBreaker, CircuitState
    from .window import EventCount

_logger = logging.getLogger("aioretry_smithy")


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


class Listeners:
    """The listeners of one circuit breaker, told one event after the other.

    Args:
        name: The name of the circuit breaker.
        listeners: Who is told, in this order.

    Raises:
        ValueError: Something among the *listeners* is none.
    """

    __slots__ = ("_listeners", "_name", "_news", "_telling")

    def __init__(self, name: str, listeners: Iterable[CircuitBreakerListener]) -> None:
        self._name = name
        self._listeners = _checked(listeners)
        self._news: deque[News] = deque()
        self._telling = False

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def tell(self, *news: News) -> None:
        """Let every listener hear the *news*, after what it is hearing now."""
        self._news.extend(news)
        # A listener that uses the circuit breaker comes back here: what it causes has
        # to wait until the others have heard what it has heard.
        if self._telling:
            return
        self._telling = True
        try:
            while self._news:
                self._tell(self._news.popleft())
        finally:
            self._telling = False

    def _tell(self, news: News) -> None:
        for listener in self._listeners:
            try:
                news(listener)
            except Exception:
                _logger.warning(
                    "circuit breaker %r: %r raised", self._name, listener, exc_info=True
                )


def _checked(
    listeners: Iterable[CircuitBreakerListener],
) -> tuple[CircuitBreakerListener, ...]:
    if isinstance(listeners, Iterable):
        checked = tuple(listeners)
        if all(isinstance(listener, CircuitBreakerListener) for listener in checked):
            return checked
    raise bad_argument("listeners", listeners, "CircuitBreakerListener objects")
