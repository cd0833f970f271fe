"""Make the decorators of the standard chain."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypedDict

from .. import _checks as check
from .._breaker.breaker import CircuitBreaker, CircuitBreakerListener
from .._breaker.client import CircuitBreakerClient, breaker_per_other_host
from .._breaker.strategy import CircuitBreakerStrategy
from .._context.options import UNSET, Unset
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
    from .._retry.budget import RetryBudgetListener
    from .._retry.config import RetryListener
    from .._retry.limiter import RetryLimiter
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

    What is missing is as if it were not given.
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


STANDARD_SETTINGS: Final = StandardSettings.__optional_keys__
"""The names of the settings."""

_OF_RETRIES: Final = (
    "attempt_timeout",
    "max_total_attempts",
    "strategy",
    "limiter",
    "listeners",
)
"""The settings that are arguments of :meth:`RetryConfig.standard`."""


def standard_decorators(
    settings: StandardSettings,
    *,
    response_timeout: float | None,
    has_group: bool = False,
) -> Iterator[Decorator]:
    """Yield the decorators of the standard chain, from the inside out.

    Args:
        settings: The settings that are given.
        response_timeout: Seconds that a call may take; None for no limit.
        has_group: Whether the circuit breakers are those of other hosts only.

    Raises:
        ValueError: A setting is not as described.
    """
    logging = settings.get("logging", UNSET)
    _check_part("logging", logging, "LoggingClient.new_decorator(...)")
    circuit_breaker = settings.get("circuit_breaker", UNSET)
    breaking = "CircuitBreakerClient.new_decorator(...)"
    _check_part("circuit_breaker", circuit_breaker, breaking)
    patience = _patience(settings.get("wait_for_ready", UNSET), circuit_breaker)
    enforce = settings.get("enforce", True)
    check.boolean("enforce", enforce)
    metrics = _checked_metrics(settings.get("metrics"))
    counting = () if metrics is None else (metrics.client(),)
    inside = settings.get("inside", ())
    if not isinstance(inside, Iterable):
        raise bad_argument("inside", inside, "a list of decorators")
    how = _how_to_retry(settings, () if metrics is None else [metrics.retry_budgets])
    yield from inside
    # Attempts as servers see them: without waits at limits and circuits.
    yield from counting
    concurrency, rate = settings.get("concurrency"), settings.get("rate")
    if concurrency is not None or rate is not None:
        # Most chains have neither.
        from .standard_limits import limit_decorators  # noqa: PLC0415

        longest = _longest_attempt(how, response_timeout)
        listeners = () if metrics is None else [metrics.concurrency_limits]
        yield from limit_decorators(
            concurrency, rate, longest, enforce=enforce, listeners=listeners
        )
    # What waits at a circuit holds no place and takes no turn.
    if circuit_breaker is UNSET:
        yield _circuit_breaker(patience, metrics, has_group=has_group, enforce=enforce)
    elif circuit_breaker is not None:
        yield circuit_breaker
    if how is not None:
        yield _retrying(how)
    yield from counting
    if logging is UNSET:
        yield LoggingClient.new_decorator(formatter=LogFormatter.line())
    elif logging is not None:
        yield logging


def check_settings(settings: Collection[str]) -> None:
    """Refuse unknown settings for a session that exists.

    Raises:
        ValueError: There is no such setting.
    """
    for name in settings:
        if name not in STANDARD_SETTINGS:
            expected = "a setting of the standard chain"
            if name == "response_timeout":
                expected += "; the session has one, the total of its ClientTimeout"
            # Without the value, which may be a secret.
            expected += nearest(name, STANDARD_SETTINGS)
            raise bad_argument("argument", name, expected)


def _check_part(name: str, part: object, usual: str, hint: str = "") -> None:
    if hint or not (part is UNSET or part is None or callable(part)):
        expected = f"{usual}, another decorator, or None to leave it out{hint}"
        raise bad_argument(name, part, expected)


def _checked_metrics(metrics: ChainMetrics | None) -> ChainMetrics | None:
    if metrics is not None and (
        isinstance(metrics, type) or not hasattr(metrics, "concurrency_limits")
    ):
        expected = "a PrometheusMetrics, an OpenTelemetryMetrics or None"
        raise bad_argument("metrics", metrics, expected)
    return metrics


def _how_to_retry(
    settings: StandardSettings, listeners: Iterable[RetryBudgetListener]
) -> Retrying | None:
    """Return what was given as retrying, or the defaults with the settings given."""
    retrying = settings.get("retrying", UNSET)
    if not isinstance(retrying, _CONFIGS):
        usual = "a RetryConfig, a RetryConfigMapping"
        _check_part("retrying", retrying, usual, call_it(retrying, *_CONFIGS))
    values: Mapping[str, Any] = {**settings}
    chosen = {name: values.get(name, UNSET) for name in _OF_RETRIES}
    given = {name: value for name, value in chosen.items() if value is not UNSET}
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
    metrics: ChainMetrics | None,
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
    if metrics is not None:
        factory = partial(factory, listeners=[metrics.circuit_breakers])
    strategy = CircuitBreakerStrategy.on_server_error_status(count_throttling=False)
    if has_group:
        return breaker_per_other_host(
            factory, strategy, enforce=enforce, wait_for_ready=patience
        )
    return CircuitBreakerClient.new_per_host_decorator(
        factory, strategy, enforce=enforce, wait_for_ready=patience
    )


def _longest_attempt(
    retrying: Retrying | None, response_timeout: float | None
) -> float:
    """Return the most seconds of an attempt; a mapping's own are not known."""
    given = retrying.attempt_timeout if isinstance(retrying, RetryConfig) else None
    longest = _USUAL_ATTEMPT if given is None else given
    return longest if response_timeout is None else min(longest, response_timeout)


def _retrying(retrying: Retrying) -> Decorator:
    if isinstance(retrying, RetryConfig):
        return RetryingClient.new_decorator(retrying)
    if isinstance(retrying, RetryConfigMapping):
        return RetryingClient.new_mapped_decorator(retrying)
    return retrying
