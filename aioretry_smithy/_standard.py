"""The chain that is right for most services."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from ._breaker.breaker import CircuitBreaker
from ._breaker.client import CircuitBreakerClient
from ._errors import bad_argument
from ._logging.client import LoggingClient
from ._options import UNSET, Unset
from ._retry.backoff import Backoff
from ._retry.budget import RetryBudget
from ._retry.client import RetryingClient
from ._retry.strategy import RetryStrategy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._client import Decorator
    from ._retry.config import Strategy
    from ._retry.limiter import RetryLimiter

_ATTEMPT_TIMEOUT = 10.0
_MAX_TOTAL_ATTEMPTS = 3


def standard_decorators(
    *,
    attempt_timeout: float | Literal[Unset.UNSET] | None,
    max_total_attempts: int | Literal[Unset.UNSET],
    strategy: Strategy | Literal[Unset.UNSET],
    limiter: RetryLimiter | Literal[Unset.UNSET] | None,
    logging: Decorator | Literal[Unset.UNSET] | None,
    retrying: Decorator | Literal[Unset.UNSET] | None,
    circuit_breaker: Decorator | Literal[Unset.UNSET] | None,
    inside: Iterable[Decorator],
) -> Iterator[Decorator]:
    """Yield the decorators of the standard chain, from the inside out."""
    settings: dict[str, Any] = {
        "attempt_timeout": attempt_timeout,
        "max_total_attempts": max_total_attempts,
        "strategy": strategy,
        "limiter": limiter,
    }
    _check_parts(logging=logging, retrying=retrying, circuit_breaker=circuit_breaker)
    if not isinstance(inside, Iterable):
        raise bad_argument("inside", inside, "a list of decorators")
    given = {name: value for name, value in settings.items() if value is not UNSET}
    yield from inside
    if circuit_breaker is UNSET:
        yield _circuit_breaker()
    elif circuit_breaker is not None:
        yield circuit_breaker
    if retrying is UNSET:
        yield _retrying(**given)
    elif given:
        name, value = next(iter(given.items()))
        raise bad_argument(name, value, "left to what is given as retrying")
    elif retrying is not None:
        yield retrying
    if logging is UNSET:
        yield LoggingClient.new_decorator()
    elif logging is not None:
        yield logging


def _check_parts(**parts: object) -> None:
    for name, part in parts.items():
        if not (part is UNSET or part is None or callable(part)):
            raise bad_argument(name, part, "a decorator, or None to leave it out")


def _circuit_breaker() -> Decorator:
    factory = partial(
        CircuitBreaker,
        failure_rate_threshold=0.5,
        minimum_request_threshold=10,
        circuit_open_window=5.0,
        counter_sliding_window=10.0,
    )
    return CircuitBreakerClient.new_per_host_decorator(factory)


def _retrying(
    *,
    attempt_timeout: float | None = _ATTEMPT_TIMEOUT,
    max_total_attempts: int = _MAX_TOTAL_ATTEMPTS,
    strategy: Any = UNSET,
    **limiter: Any,
) -> Decorator:
    if strategy is UNSET:
        backoff = Backoff.exponential(0.1, 20.0, 2.0).with_full_jitter()
        strategy = RetryStrategy.failsafe(backoff)
    limiter.setdefault("limiter", RetryBudget.per_host())
    return RetryingClient.new_decorator(
        strategy,
        max_total_attempts=max_total_attempts,
        attempt_timeout=attempt_timeout,
        **limiter,
    )
