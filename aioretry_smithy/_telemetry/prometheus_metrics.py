"""The Prometheus metrics of one registry, and the client that counts and times."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar
from weakref import WeakSet

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from .._context.client import ClientT
from .._errors import bad_argument
from . import client
from .series import PREFIX, SERIES, ThingKind, ThingT, WeakRegistry, one_per_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .._context.context import ClientRequestContext

Labels: TypeAlias = tuple[str, ...]


class TrafficMetrics(client.Traffic[Counter, Histogram]):
    """The counters and histograms of a metrics client."""

    def __init__(self, *, is_http: bool) -> None:
        super().__init__(_counter, _histogram, is_http=is_http)
        durations = self.attempt_duration, self.call_duration, self.connection_wait
        self.collectors: list[Collector] = [
            *(self.attempts, self.retries, *self.hedges.values()),
            *filter(None, durations),
        ]


class ThingMetrics(Collector, Generic[ThingT]):
    """The counters and gauges of the things of a kind.

    Args:
        kind: The kind.
        detailed: Whether a label tells the endpoints of a group from one another.
    """

    def __init__(self, kind: ThingKind[ThingT], *, detailed: bool) -> None:
        self._kind, self._detailed = kind, detailed
        self._names, self._endpoints = client.Names(), client.Names()
        self._things: WeakRegistry[ThingT] = WeakRegistry()
        # Not their names: a new one may have the name of one that is gone.
        self._noted: WeakSet[ThingT] = WeakSet()
        self._counters = {
            name: _counter(name, detailed=detailed) for name in kind.counters
        }
        self._gauges: dict[str, Gauge] = {}
        self.collectors: list[Collector] = [*self._counters.values()]
        if kind.mode is None:
            self.collectors.append(self)
            return
        for name in kind.gauges:
            series = SERIES[name]
            self._gauges[name] = Gauge(
                f"{PREFIX}{series.name}",
                series.text,
                series.labels,
                multiprocess_mode=kind.mode,
                registry=None,
            )
        self.collectors.extend(self._gauges.values())

    def show(self, thing: ThingT, /, *, detailed: bool) -> None:
        """Update the gauges of a thing."""
        self._noted.add(thing)
        name = self._names[thing.name]
        if not detailed:
            # Counters begin at 0, so that rate() sees the first event too.
            for counter, begun in self._kind.counters.items():
                for labels in begun:
                    self._counters[counter].labels(name, *labels)
        if name == client.ANOTHER_NAME:
            return
        self._things.add(thing)
        for key, gauge in self._gauges.items():
            for labels, value in self._kind.gauges[key](thing, False):
                gauge.labels(name, *labels).set(value)

    def note(self, thing: ThingT, /, *, detailed: bool) -> None:
        """Show a thing that is new."""
        if thing not in self._noted:
            self.show(thing, detailed=detailed)

    def count(self, name: str, thing: ThingT, /, *labels: str) -> None:
        """Count an event under the labels that follow the name of the thing."""
        if self._detailed:
            labels = self._endpoints[labels[0]], *labels[1:]
        self._counters[name].labels(self._names[thing.name], *labels).inc()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read the gauges of living things, which also change with time."""
        things = self._things.all()
        for name, read in self._kind.gauges.items():
            series = SERIES[name]
            family = GaugeMetricFamily(
                f"{PREFIX}{series.name}",
                series.text,
                labels=series.labels_of(detailed=self._detailed),
            )
            for thing in things:
                for labels, value in read(thing, self._detailed):
                    family.add_metric((self._names[thing.name], *labels), value)
            yield family

    describe = collect


def _counter(name: str, *, detailed: bool = False) -> Counter:
    series = SERIES[name]
    labels = series.labels_of(detailed=detailed)
    return Counter(f"{PREFIX}{series.name}", series.text, labels, registry=None)


def _histogram(name: str) -> Histogram:
    series = SERIES[name]
    return Histogram(
        f"{PREFIX}{series.name}",
        series.text,
        series.labels,
        buckets=client.DURATION_BUCKETS,
        registry=None,
    )


_M = TypeVar("_M", "TrafficMetrics", "ThingMetrics[Any]")


def metrics_in(registry: CollectorRegistry, *, is_http: bool) -> TrafficMetrics:
    """Return the metrics of a kind of calls in a registry.

    Raises:
        ValueError: *registry* is none, or has a metric of that name that is not ours.
    """
    new = partial(TrafficMetrics, is_http=is_http)
    return _made_in(registry, (TrafficMetrics, is_http), new)


def things_in(
    registry: CollectorRegistry, kind: ThingKind[ThingT], *, detailed: bool = False
) -> ThingMetrics[ThingT]:
    """Return the metrics for the things of a kind in a registry.

    Raises:
        ValueError: *registry* is none, or has a metric of that name that is not ours.
    """
    new = partial(ThingMetrics, kind, detailed=detailed)
    return _made_in(registry, (kind, detailed), new)


def _made_in(registry: CollectorRegistry, key: object, new: Callable[[], _M]) -> _M:
    if not isinstance(registry, CollectorRegistry):
        raise bad_argument("registry", registry, "a prometheus_client registry")
    return one_per_registry(registry, key, lambda: _registered(registry, new()))


def _registered(registry: CollectorRegistry, metrics: _M) -> _M:
    with ExitStack() as undo:
        for collector in metrics.collectors:
            registry.register(collector)
            undo.callback(registry.unregister, collector)
        undo.pop_all()
    return metrics


class MeteredClient(client.TelemetryClient[ClientT]):
    """Counts and times calls and attempts of any kind.

    Args:
        delegate: The next client inwards.
        metrics: The metrics of one registry.
    """

    def __init__(self, delegate: ClientT, metrics: TrafficMetrics) -> None:
        super().__init__(delegate, metrics)
        self._metrics = metrics

    def begin(
        self, ctx: ClientRequestContext, request: object
    ) -> client.CallObservation:
        """Begin to measure a call, or an attempt."""
        metrics, subject = self._metrics, self._subject(ctx, request)
        if self.sees_call(ctx):
            call, is_hedged = _Call(metrics, request, subject), self.surrounds_hedges
            call.hedges = client.HedgeCount(ctx.call) if is_hedged else None
            return call
        attempt = _Attempt(metrics, request, subject)
        # Not the attempt's number: a decorator may send twice in one attempt.
        is_hedge = ctx.attempt is not None and ctx.log.is_hedge
        attempt.is_retry = metrics in ctx.attributes and not is_hedge
        ctx.attributes[metrics] = True
        return attempt

    @abstractmethod
    def _subject(self, ctx: ClientRequestContext, request: Any) -> Labels:
        """Return the labels of a call."""


class _Timed(client.CallObservation):
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
    hedges: client.HedgeCount | None

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
        labels = (*self._labels, client.status_class(ctx, cause))
        metrics.attempts.labels(*labels).inc()
        # By 0 too: the series must exist to be divided by that of the attempts.
        metrics.retries.labels(*labels).inc(self.is_retry)
        metrics.attempt_duration.labels(*labels).observe(self._elapsed())
        if metrics.connection_wait is not None:
            for part, seconds in client.connection_waits(ctx).items():
                of_part = metrics.connection_wait.labels(self._labels[0], part)
                of_part.observe(seconds)


def _stop_reason(ctx: ClientRequestContext, cause: BaseException | None) -> str:
    if cause is not None and not isinstance(cause, Exception):
        return "cancelled"
    if client.has_succeeded(ctx, cause):
        return "none"
    reason = ctx.log.root.stop_reason
    # Without a stop reason, another decorator raised, or retried until a failure.
    return "error" if reason is None else reason.value
