"""The Prometheus metrics of one registry, and the client that counts and times."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar
from weakref import WeakSet

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from .._breaker.state import CircuitState
from .._context.client import ClientT
from .._errors import bad_argument
from .._text import encodable
from .client import Observation, TelemetryClient
from .labels import (
    ANOTHER_NAME,
    DURATION_BUCKETS,
    HEDGES,
    HedgeCount,
    Names,
    connection_waits,
    has_succeeded,
    status_class,
)
from .registry import LIMIT_GAUGES, WeakRegistry, one_per_registry
from .series import PREFIX, SERIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .._breaker.breaker import CircuitBreaker
    from .._context.context import ClientRequestContext
    from .._limits.concurrency_limit import ConcurrencyLimit
    from .._retry.budget import RetryBudget
    from .series import Series

Labels: TypeAlias = tuple[str, ...]


class RegisteredMetrics:
    """Metrics that are registered together, as the table of series has them.

    Args:
        prefix: What the names of the metrics begin with.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix: str = prefix
        self.collectors: list[Collector] = []
        self.names: Names = Names()

    def counter(self, name: str, labels: Labels | None = None) -> Counter:
        """Make a counter, perhaps with other *labels* than those of the table."""
        series = SERIES[f"{self.prefix}{name}"]
        labels = series.labels if labels is None else labels
        counter = Counter(f"{PREFIX}{series.name}", series.text, labels, registry=None)
        self.collectors.append(counter)
        return counter

    def gauge(self, name: str, mode: Literal["livemin", "livesum"]) -> Gauge:
        """Make a gauge; the *mode* says what several processes show together."""
        series = SERIES[f"{self.prefix}{name}"]
        gauge = Gauge(
            f"{PREFIX}{series.name}",
            series.text,
            series.labels,
            multiprocess_mode=mode,
            registry=None,
        )
        self.collectors.append(gauge)
        return gauge

    def histogram(self, name: str) -> Histogram:
        """Make a histogram of seconds."""
        series = SERIES[f"{self.prefix}{name}"]
        histogram = Histogram(
            f"{PREFIX}{series.name}",
            series.text,
            series.labels,
            buckets=DURATION_BUCKETS,
            registry=None,
        )
        self.collectors.append(histogram)
        return histogram


class TrafficMetrics(RegisteredMetrics):
    """The counters and histograms of a metrics client.

    Args:
        prefix: What the names of the metrics begin with.
        is_http: Whether there may be connections and hedges.
    """

    def __init__(self, prefix: str, *, is_http: bool) -> None:
        super().__init__(prefix)
        self.attempts: Counter = self.counter("attempts")
        self.retries: Counter = self.counter("retries")
        self.attempt_duration: Histogram = self.histogram("attempt_duration_seconds")
        self.call_duration: Histogram = self.histogram("call_duration_seconds")
        # There without timings too, so that a dashboard can ask for it.
        self.connection_wait: Histogram | None = (
            self.histogram("connection_wait_seconds") if is_http else None
        )
        self.hedges: dict[str, Counter] = {
            kind: self.counter("hedges" if kind == "sent" else f"hedges_{kind}")
            for kind in (HEDGES if is_http else ())
        }


def http_metrics() -> TrafficMetrics:
    """Make the metrics of HTTP calls."""
    return TrafficMetrics("", is_http=True)


def rpc_metrics() -> TrafficMetrics:
    """Make the metrics of calls of functions."""
    return TrafficMetrics("rpc_", is_http=False)


class BreakerMetrics(RegisteredMetrics):
    """The counters and gauges of circuit breakers."""

    def __init__(self) -> None:
        super().__init__("circuit_breaker_")
        self.state: Gauge = self.gauge("state", "livesum")
        self.transitions: Counter = self.counter("transitions")
        self.rejections: Counter = self.counter("rejections")
        # Not their names: a new one may have the name of one that is gone.
        self.shown: WeakSet[CircuitBreaker] = WeakSet()

    def show(self, name: str, present: CircuitState) -> None:
        """Show the state of a circuit breaker."""
        # Counters begin at 0, so that rate() sees the first event too.
        self.rejections.labels(name)
        for state in CircuitState:
            self.transitions.labels(name, state.value)
            if name != ANOTHER_NAME:
                self.state.labels(name, state.value).set(state is present)


class BudgetMetrics(RegisteredMetrics):
    """The counters and gauges of retry budgets."""

    def __init__(self) -> None:
        super().__init__("retry_budget_")
        self.tokens: Gauge = self.gauge("tokens", "livemin")
        self.refusals: Counter = self.counter("refusals")

    def show(self, budget: RetryBudget) -> str:
        """Show the tokens of a budget, and return its label."""
        name = self.names[budget.name]
        self.refusals.labels(name)
        if name != ANOTHER_NAME:
            self.tokens.labels(name).set(budget.tokens)
        return name


class LimitMetrics(RegisteredMetrics):
    """The counters and gauges of concurrency limits."""

    def __init__(self) -> None:
        super().__init__("concurrency_limit_")
        self.refusals: Counter = self.counter("refusals")
        self.gauges: LimitGauges = LimitGauges(self.prefix)
        self.collectors.append(self.gauges)

    def show(self, limit: ConcurrencyLimit) -> str:
        """Show a limit, and return its label."""
        name = self.names[limit.name]
        # Counters begin at 0, so that rate() sees the first event too.
        self.refusals.labels(name)
        if name != ANOTHER_NAME:
            self.gauges.limits.add(limit)
        return name


class LimitGauges(Collector):
    """Reads limits when Prometheus asks: they change with each request."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.limits: WeakRegistry[ConcurrencyLimit] = WeakRegistry()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges of all limits that are alive."""
        shown = self.limits.all()
        for name, value, _ in LIMIT_GAUGES:
            family = family_of(SERIES[f"{self._prefix}{name}"])
            for limit in shown:
                family.add_metric([encodable(limit.name)], value(limit))
            yield family

    describe = collect


def family_of(series: Series, labels: Labels | None = None) -> GaugeMetricFamily:
    """Make a gauge that is filled when Prometheus asks."""
    labels = series.labels if labels is None else labels
    return GaugeMetricFamily(f"{PREFIX}{series.name}", series.text, labels=labels)


_M = TypeVar("_M", bound=RegisteredMetrics)


def metrics_in(registry: CollectorRegistry, kind: Callable[[], _M]) -> _M:
    """Return the metrics of a kind in a registry, which takes each name once.

    Raises:
        ValueError: *registry* is none, or has a metric of that name that is not ours.
    """
    if not isinstance(registry, CollectorRegistry):
        raise bad_argument("registry", registry, "a prometheus_client registry")
    return one_per_registry(registry, kind, lambda: _registered(registry, kind()))


def _registered(registry: CollectorRegistry, metrics: _M) -> _M:
    with ExitStack() as undo:
        for collector in metrics.collectors:
            registry.register(collector)
            undo.callback(registry.unregister, collector)
        undo.pop_all()
    return metrics


class MeteredClient(TelemetryClient[ClientT]):
    """Counts and times calls and attempts of any kind.

    Args:
        delegate: The next client inwards.
        metrics: The metrics of one registry.
    """

    def __init__(self, delegate: ClientT, metrics: TrafficMetrics) -> None:
        super().__init__(delegate, metrics)
        self._metrics = metrics

    def begin(self, ctx: ClientRequestContext, request: object) -> Observation:
        """Begin to measure a call, or an attempt."""
        metrics, subject = self._metrics, self._subject(ctx, request)
        if self.sees_call(ctx):
            call, is_hedged = _Call(metrics, request, subject), self.surrounds_hedges
            call.hedges = HedgeCount(ctx.call) if is_hedged else None
            return call
        attempt = _Attempt(metrics, request, subject)
        # Not the attempt's number: a decorator may send twice in one attempt.
        is_hedge = ctx.attempt is not None and ctx.log.is_hedge
        attempt.is_retry = metrics in ctx.attributes and not is_hedge
        ctx.attributes[metrics] = True
        return attempt

    @abstractmethod
    def _subject(self, ctx: ClientRequestContext, request: Any) -> Labels:
        """Return the labels that tell a call from others."""


class _Timed(Observation):
    """The common part of a call and an attempt: a start, and labels for the call."""

    def __init__(
        self, metrics: TrafficMetrics, request: object, subject: Labels
    ) -> None:
        self.request = request
        self._metrics = metrics
        self._labels = subject
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()

    def _elapsed(self) -> float:
        return self._loop.time() - self._started


class _Call(_Timed):
    hedges: HedgeCount | None

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        if self.hedges is not None:
            self.hedges.tell(ctx.call, self._count_hedges)
        labels = (*self._labels, _stop_reason(ctx, cause))
        self._metrics.call_duration.labels(*labels).observe(self._elapsed())

    def _count_hedges(self, kind: str, number: int) -> None:
        self._metrics.hedges[kind].labels(*self._labels).inc(number)


class _Attempt(_Timed):
    is_retry: bool

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        metrics = self._metrics
        labels = (*self._labels, status_class(ctx, cause))
        metrics.attempts.labels(*labels).inc()
        # By 0 too: the series must exist to be divided by that of the attempts.
        metrics.retries.labels(*labels).inc(self.is_retry)
        metrics.attempt_duration.labels(*labels).observe(self._elapsed())
        if metrics.connection_wait is not None:
            for part, seconds in connection_waits(ctx).items():
                of_part = metrics.connection_wait.labels(self._labels[0], part)
                of_part.observe(seconds)


def _stop_reason(ctx: ClientRequestContext, cause: BaseException | None) -> str:
    if cause is not None and not isinstance(cause, Exception):
        return "cancelled"
    if has_succeeded(ctx, cause):
        return "none"
    reason = ctx.log.root.stop_reason
    # Without a stop reason, another decorator raised, or retried until a failure.
    return "error" if reason is None else reason.value
