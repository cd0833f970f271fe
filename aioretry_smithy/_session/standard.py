"""Make the decorators of the standard chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .._breaker.breaker import CircuitBreaker
from .._breaker.client import CircuitBreakerClient, breaker_per_other_host
from .._breaker.strategy import CircuitBreakerStrategy
from .._context.options import UNSET, Unset
from .._errors import bad_argument
from .._logging.client import LoggingClient
from .._meant import call_it
from .._retry.client import RetryingClient
from .._retry.config import RetryConfig, Strategy
from .._retry.config_mapping import RetryConfigMapping

if TYPE_CHECKING:
    from .._context.client import Decorator
    from .._retry.limiter import RetryLimiter
    from .._retry.listener import RetryListener
    from .standard_limits import Concurrency, Rate

_CONFIGS = (RetryConfig, RetryConfigMapping)
_USUAL_ATTEMPT = 10.0


Retrying: TypeAlias = "Decorator | RetryConfig | RetryConfigMapping"
"""A value of the argument ``retrying`` of the standard chain."""


def standard_decorators(
    *,
    attempt_timeout: float | Literal[Unset.UNSET] | None,
    max_total_attempts: int | Literal[Unset.UNSET],
    strategy: Strategy | Literal[Unset.UNSET],
    limiter: RetryLimiter | Literal[Unset.UNSET] | None,
    listeners: Iterable[RetryListener] | Literal[Unset.UNSET],
    logging: Decorator | Literal[Unset.UNSET] | None,
    retrying: Retrying | Literal[Unset.UNSET] | None,
    circuit_breaker: Decorator | Literal[Unset.UNSET] | None,
    concurrency: Concurrency | None,
    rate: Rate | None,
    enforce: bool,
    inside: Iterable[Decorator],
    has_group: bool = False,
) -> Iterator[Decorator]:
    """Yield the decorators of the standard chain, from the inside out.

    Where it *has_group*, the circuit breakers are those of other hosts.
    """
    _check_part("logging", logging, "LoggingClient.new_decorator(...)")
    breaking = "CircuitBreakerClient.new_decorator(...)"
    _check_part("circuit_breaker", circuit_breaker, breaking)
    if not isinstance(enforce, bool):
        raise bad_argument("enforce", enforce, "True or False")
    if not isinstance(inside, Iterable):
        raise bad_argument("inside", inside, "a list of decorators")
    settings = {
        "attempt_timeout": attempt_timeout,
        "max_total_attempts": max_total_attempts,
        "strategy": strategy,
        "limiter": limiter,
        "listeners": listeners,
    }
    how = _how_to_retry(retrying, settings)
    yield from inside
    if circuit_breaker is UNSET:
        yield _circuit_breaker(has_group=has_group, enforce=enforce)
    elif circuit_breaker is not None:
        yield circuit_breaker
    if concurrency is not None or rate is not None:
        # Most chains have neither.
        from .standard_limits import limit_decorators  # noqa: PLC0415

        longest = _attempt_timeout(how)
        yield from limit_decorators(concurrency, rate, longest, enforce=enforce)
    if how is not None:
        yield _retrying(how)
    if logging is UNSET:
        yield LoggingClient.new_decorator()
    elif logging is not None:
        yield logging


def _check_part(name: str, part: object, usual: str, hint: str = "") -> None:
    if hint or not (part is UNSET or part is None or callable(part)):
        expected = f"{usual}, another decorator, or None to leave it out{hint}"
        raise bad_argument(name, part, expected)


def _how_to_retry(
    retrying: Retrying | Literal[Unset.UNSET] | None, settings: dict[str, Any]
) -> Retrying | None:
    """Return what was given as retrying, or the defaults with the settings given."""
    if not isinstance(retrying, _CONFIGS):
        usual = "a RetryConfig, a RetryConfigMapping"
        _check_part("retrying", retrying, usual, call_it(retrying, *_CONFIGS))
    given = {name: value for name, value in settings.items() if value is not UNSET}
    if retrying is UNSET:
        return RetryConfig.standard(**given)
    if given:
        name, value = next(iter(given.items()))
        if retrying is None:
            expected = "not given beside retrying=None, which leaves the retries out"
        else:
            expected = f"in what is given as retrying: RetryConfig.standard({name}=...)"
        raise bad_argument(name, value, expected)
    return retrying


def _circuit_breaker(*, has_group: bool, enforce: bool) -> Decorator:
    factory = partial(
        CircuitBreaker,
        failure_rate_threshold=0.5,
        minimum_request_threshold=10,
        circuit_open_window=5.0,
        counter_sliding_window=10.0,
    )
    strategy = CircuitBreakerStrategy.on_server_error_status(count_throttling=False)
    if has_group:
        return breaker_per_other_host(factory, strategy, enforce=enforce)
    return CircuitBreakerClient.new_per_host_decorator(
        factory, strategy, enforce=enforce
    )


def _attempt_timeout(retrying: Retrying | None) -> float:
    given = retrying.attempt_timeout if isinstance(retrying, RetryConfig) else None
    return _USUAL_ATTEMPT if given is None else given


def _retrying(retrying: Retrying) -> Decorator:
    if isinstance(retrying, RetryConfig):
        return RetryingClient.new_decorator(retrying)
    if isinstance(retrying, RetryConfigMapping):
        return RetryingClient.new_mapped_decorator(retrying)
    return retrying
