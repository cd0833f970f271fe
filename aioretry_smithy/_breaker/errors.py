"""The error of a request that an open circuit refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._errors import RefusedRequestError
from .state import CircuitState

if TYPE_CHECKING:
    from .breaker import CircuitBreaker


_KEPT: Final = {"circuit_breaker": ("name", "state", "event_count")}


class FailFastError(RefusedRequestError):
    """The circuit breaker is open; the request was not sent.

    It may be pickled; it then has a snapshot of the circuit breaker, with its ``name``,
    ``state`` and ``event_count``.

    Args:
        circuit_breaker: The circuit breaker that refused.
        retry_in: Seconds until it may grant a trial, or None when only
            ``enter_state()`` will open the way again.
    """

    circuit_breaker: CircuitBreaker
    """The circuit breaker that refused."""

    retry_in: float | None
    """Seconds until a trial may be granted, counted from the refusal, or None."""

    is_of_endpoint: bool = False
    """Whether the circuit of a single endpoint refused, so that another may serve."""

    _snapshots = _KEPT

    _is_half_open: bool

    def __init__(
        self, circuit_breaker: CircuitBreaker, retry_in: float | None = None
    ) -> None:
        super().__init__(circuit_breaker, retry_in)
        self.circuit_breaker = circuit_breaker
        self.retry_in = retry_in
        # By the time that it is shown the circuit may be closed.
        state = getattr(circuit_breaker, "state", None)
        self._is_half_open = state is CircuitState.HALF_OPEN

    def __str__(self) -> str:
        when = "" if self.retry_in is None else f", next trial in {self.retry_in:.3f} s"
        state = "half open: a trial is under way" if self._is_half_open else "open"
        return f"circuit breaker {self.circuit_breaker.name!r} is {state}{when}"
