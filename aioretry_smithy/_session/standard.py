"""Make the decorators of the standard chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypedDict,
)

from .._breaker.breaker import CircuitBreaker, CircuitBreakerListener
from .._breaker.client import CircuitBreakerClient, breaker_per_other_host
from .._breaker.strategy import CircuitBreakerStrategy
from .._context.context import UNSET, Unset
from .._errors import bad_argument, call_it, nearest
from .._logging.client import LoggingClient
from .._logging.formatter import LogFormatter
from .._policies.backoff import Backoff
from .._retry.client import RetryingClient
from .._retry.config import RetryConfig, RetryConfigMapping, Strategy, standard_budget

if TYPE_CHECKING:
    from .._context.client import Decorator
    from .._endpoints.state import EndpointGroupListener
    from .._limits.concurrency_limit import ConcurrencyLimitListener
    from .._retry.config import RetryListener
    from .._retry.limiter import RetryBudgetListener, RetryLimiter
    from .standard_limits import Concurrency, Rate

_CONFIGS = (RetryConfig, RetryConfigMapping)
_USUAL_ATTEMPT = 10.0

_FIRST_WINDOW = 0.1

_LONGEST_WINDOW = 5.0
"""The longest time between trials, in seconds, and the longest wait for a trial.

Who waits less than that may never see a trial.
"""

_LONGER_EACH_TIME = 1.5
"""The growth of the windows, by which a trial soon follows the end of a short outage.

After one of three seconds there is one before the five are over; by 2.0 there may be
none.
"""


Retrying: TypeAlias = "Decorator | RetryConfig | RetryConfigMapping"
"""A value of the argument ``retrying`` of the standard chain."""


class ChainMetrics(Protocol):
    """Counts what happens in a chain: a client, and listeners for its parts."""

    @property
    def circuit_breakers(self) -> CircuitBreakerListener:
        """The listener of circuit breakers."""

    @property
    def retry_budgets(self) -> RetryBudgetListener:
        """The listener of retry budgets."""

    @property
    def concurrency_limits(self) -> ConcurrencyLimitListener:
        """The listener of concurrency limits."""

    @property
    def endpoint_groups(self) -> EndpointGroupListener:
        """The listener of endpoint groups."""

    def client(self) -> Decorator:
        """Return a decorator that counts attempts inside the retries, else calls."""


class StandardSettings(TypedDict, total=False):
    """The settings of the standard chain, as :meth:`SessionBuilder.standard` has them.

    For type checkers alone.
    """

    attempt_timeout: float | Literal[Unset.UNSET] | None
    max_total_attempts: int | Literal[Unset.UNSET]
    strategy: Strategy | Literal[Unset.UNSET]
    limiter: RetryLimiter | Literal[Unset.UNSET] | None
    listeners: Iterable[RetryListener] | Literal[Unset.UNSET]
    logging: Decorator | Literal[Unset.UNSET] | None
    retrying: Retrying | Literal[Unset.UNSET] | None
    circuit_breaker: Decorator | Literal[Unset.UNSET] | None
    wait_for_ready: float | Literal[Unset.UNSET] | None
    concurrency: Concurrency | None
    rate: Rate | None
    metrics: ChainMetrics | None
    enforce: bool
    inside: Iterable[Decorator]


class _Counting(NamedTuple):
    """The decorators and the listeners that count; none without metrics."""

    clients: tuple[Decorator, ...] = ()
    breakers: tuple[CircuitBreakerListener, ...] = ()
    budgets: tuple[RetryBudgetListener, ...] = ()
    limits: tuple[ConcurrencyLimitListener, ...] = ()

    @classmethod
    def by(cls, metrics: ChainMetrics | None) -> _Counting:
        """Return those of the metrics.

        Raises:
            ValueError: These are none.
        """
        if metrics is None:
            return cls()
        if isinstance(metrics, type) or not hasattr(metrics, "concurrency_limits"):
            expected = "a PrometheusMetrics, an OpenTelemetryMetrics or None"
            raise bad_argument("metrics", metrics, expected)
        return cls(
            (metrics.client(),),
            (metrics.circuit_breakers,),
            (metrics.retry_budgets,),
            (metrics.concurrency_limits,),
        )


def standard_decorators(
    *,
    attempt_timeout: float | Literal[Unset.UNSET] | None = UNSET,
    max_total_attempts: int | Literal[Unset.UNSET] = UNSET,
    strategy: Strategy | Literal[Unset.UNSET] = UNSET,
    limiter: RetryLimiter | Literal[Unset.UNSET] | None = UNSET,
    listeners: Iterable[RetryListener] | Literal[Unset.UNSET] = UNSET,
    logging: Decorator | Literal[Unset.UNSET] | None = UNSET,
    retrying: Retrying | Literal[Unset.UNSET] | None = UNSET,
    circuit_breaker: Decorator | Literal[Unset.UNSET] | None = UNSET,
    wait_for_ready: float | Literal[Unset.UNSET] | None = UNSET,
    concurrency: Concurrency | None = None,
    rate: Rate | None = None,
    metrics: ChainMetrics | None = None,
    enforce: bool = True,
    inside: Iterable[Decorator] = (),
    has_group: bool = False,
) -> Iterator[Decorator]:
    """Yield the decorators of the standard chain, from the inside out.

    Where it *has_group*, the circuit breakers are those of other hosts.
    """
    _check_part("logging", logging, "LoggingClient.new_decorator(...)")
    breaking = "CircuitBreakerClient.new_decorator(...)"
    _check_part("circuit_breaker", circuit_breaker, breaking)
    patience = _patience(wait_for_ready, circuit_breaker)
    if not isinstance(enforce, bool):
        raise bad_argument("enforce", enforce, "True or False")
    counting = _Counting.by(metrics)
    if not isinstance(inside, Iterable):
        raise bad_argument("inside", inside, "a list of decorators")
    settings = {
        "attempt_timeout": attempt_timeout,
        "max_total_attempts": max_total_attempts,
        "strategy": strategy,
        "limiter": limiter,
        "listeners": listeners,
    }
    how = _how_to_retry(retrying, settings, counting.budgets)
    yield from inside
    # Attempts as servers see them: without waits at limits and circuits.
    yield from counting.clients
    if concurrency is not None or rate is not None:
        # Most chains have neither.
        from .standard_limits import limit_decorators  # noqa: PLC0415

        longest = _attempt_timeout(how)
        yield from limit_decorators(
            concurrency, rate, longest, enforce=enforce, listeners=counting.limits
        )
    # What waits at a circuit holds no place and takes no turn.
    if circuit_breaker is UNSET:
        yield _circuit_breaker(patience, counting, has_group=has_group, enforce=enforce)
    elif circuit_breaker is not None:
        yield circuit_breaker
    if how is not None:
        yield _retrying(how)
    yield from counting.clients
    if logging is UNSET:
        yield LoggingClient.new_decorator(formatter=LogFormatter.line())
    elif logging is not None:
        yield logging


def chosen_decorators(settings: StandardSettings) -> Iterator[Decorator]:
    """Yield the decorators for a session that exists, from the inside out.

    Raises:
        ValueError: There is no such setting, or one is not as described.
    """
    known = StandardSettings.__optional_keys__
    for name in settings:
        if name not in known:
            expected = "a setting of the standard chain"
            if name == "response_timeout":
                expected += "; the session has one, the total of its ClientTimeout"
            # Without the value, which may be a secret.
            raise bad_argument("argument", name, expected + nearest(name, known))
    return standard_decorators(**settings)


def _check_part(name: str, part: object, usual: str, hint: str = "") -> None:
    if hint or not (part is UNSET or part is None or callable(part)):
        expected = f"{usual}, another decorator, or None to leave it out{hint}"
        raise bad_argument(name, part, expected)


def _how_to_retry(
    retrying: Retrying | Literal[Unset.UNSET] | None,
    settings: dict[str, Any],
    listeners: Iterable[RetryBudgetListener],
) -> Retrying | None:
    """Return what was given as retrying, or the defaults with the settings given."""
    if not isinstance(retrying, _CONFIGS):
        usual = "a RetryConfig, a RetryConfigMapping"
        _check_part("retrying", retrying, usual, call_it(retrying, *_CONFIGS))
    given = {name: value for name, value in settings.items() if value is not UNSET}
    if retrying is UNSET:
        given.setdefault("limiter", standard_budget(listeners))
        return RetryConfig.standard(**given)
    if given:
        name, value = next(iter(given.items()))
        if retrying is None:
            expected = "not given beside retrying=None, which leaves the retries out"
        else:
            expected = f"in what is given as retrying: RetryConfig.standard({name}=...)"
        raise bad_argument(name, value, expected)
    return retrying


def _patience(
    given: float | Literal[Unset.UNSET] | None,
    circuit_breaker: Decorator | Literal[Unset.UNSET] | None,
) -> float | None:
    """Return the seconds that a request waits for a server that is away."""
    if given is UNSET:
        return _LONGEST_WINDOW
    if circuit_breaker is None:
        expected = "not given beside circuit_breaker=None, which leaves the wait out"
        raise bad_argument("wait_for_ready", given, expected)
    if circuit_breaker is not UNSET:
        where = "CircuitBreakerClient.new_per_host_decorator(wait_for_ready=...)"
        expected = f"in what is given as circuit_breaker: {where}"
        raise bad_argument("wait_for_ready", given, expected)
    return given


def _circuit_breaker(
    patience: float | None,
    counting: _Counting,
    *,
    has_group: bool,
    enforce: bool,
) -> Decorator:
    windows = Backoff.exponential(_FIRST_WINDOW, _LONGEST_WINDOW, _LONGER_EACH_TIME)
    factory = partial(
        CircuitBreaker,
        failure_rate_threshold=1.0,
        consecutive_failures=5,
        circuit_open_window=windows.with_jitter(-0.2, 0.0),
    )
    if counting.breakers:
        factory = partial(factory, listeners=counting.breakers)
    strategy = CircuitBreakerStrategy.on_server_error_status(count_throttling=False)
    if has_group:
        return breaker_per_other_host(
            factory, strategy, enforce=enforce, wait_for_ready=patience
        )
    return CircuitBreakerClient.new_per_host_decorator(
        factory, strategy, enforce=enforce, wait_for_ready=patience
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
