"""The Prometheus metrics of one registry, and the client that counts and times."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import ExitStack
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
    from collections.abc import Callable, Iterable, Iterator

    from .._call.outcome import Request
    from .._context.context import ClientRequestContext

_M = TypeVar("_M")
_SeriesT = TypeVar("_SeriesT", Counter, Gauge, Histogram)

Labels: TypeAlias = tuple[str, ...]
TrafficMetrics: TypeAlias = client.Traffic["Counter | Histogram"]
"""The counters and histograms of a metrics client."""


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
            name: _new(Counter, name, detailed=detailed) for name in kind.counters
        }
        # Without a mode, gauges are read from living things by collect().
        self._gauges = {
            name: _new(Gauge, name, multiprocess_mode=kind.mode)
            for name in kind.gauges
            if kind.mode is not None
        }
        read = [] if self._gauges else [self]
        self.collectors: list[Collector] = [
            *self._counters.values(),
            *self._gauges.values(),
            *read,
        ]

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


def _new(
    kind: type[_SeriesT], name: str, *, detailed: bool = False, **options: Any
) -> _SeriesT:
    """Make a series of the table, which no registry has yet."""
    series = SERIES[name]
    labels = series.labels_of(detailed=detailed)
    shown = f"{PREFIX}{series.name}"
    return kind(shown, series.text, labels, registry=None, **options)


def _counter_or_histogram(name: str) -> Counter | Histogram:
    if SERIES[name].kind == "counter":
        return _new(Counter, name)
    return _new(Histogram, name, buckets=client.DURATION_BUCKETS)


def metrics_in(registry: CollectorRegistry, *, is_http: bool) -> TrafficMetrics:
    """Return the metrics of a kind of calls in a registry.

    Raises:
        ValueError: *registry* is none, or has a metric of that name that is not ours.
    """

    def new() -> TrafficMetrics:
        metrics = client.Traffic(_counter_or_histogram, is_http=is_http)
        _register(registry, metrics.series.values())
        return metrics

    return _made_in(registry, (client.Traffic, is_http), new)


def things_in(
    registry: CollectorRegistry, kind: ThingKind[ThingT], *, detailed: bool = False
) -> ThingMetrics[ThingT]:
    """Return the metrics for the things of a kind in a registry.

    Raises:
        ValueError: *registry* is none, or has a metric of that name that is not ours.
    """

    def new() -> ThingMetrics[ThingT]:
        metrics = ThingMetrics(kind, detailed=detailed)
        _register(registry, metrics.collectors)
        return metrics

    return _made_in(registry, (kind, detailed), new)


def _made_in(registry: CollectorRegistry, key: object, new: Callable[[], _M]) -> _M:
    if not isinstance(registry, CollectorRegistry):
        raise bad_argument("registry", registry, "a prometheus_client registry")
    return one_per_registry(registry, key, new)


def _register(registry: CollectorRegistry, collectors: Iterable[Collector]) -> None:
    """Register all collectors, or none where the registry refuses one."""
    with ExitStack() as undo:
        for collector in collectors:
            registry.register(collector)
            undo.callback(registry.unregister, collector)
        undo.pop_all()


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
    ) -> client.Observation[Labels]:
        """Begin to measure a call, or an attempt."""
        labels = self._subject(ctx, request)
        return _Timed(self, ctx, request, labels, self._metrics)

    @abstractmethod
    def _subject(self, ctx: ClientRequestContext, request: Request) -> Labels:
        """Return the labels of a call."""


class _Timed(client.Observation[Labels]):
    """A call or an attempt that is measured at its end."""

    def __init__(
        self,
        metered: MeteredClient[Any],
        ctx: ClientRequestContext,
        request: object,
        labels: Labels,
        metrics: TrafficMetrics,
    ) -> None:
        super().__init__(metered, ctx, request, labels)
        self._metrics = metrics

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        outcome = (_stop_reason if self.is_call else client.status_class)(ctx, cause)
        seconds = self.loop.time() - self.started
        self.measure(ctx, seconds, (*self.labels, outcome))

    def record(self, name: str, value: float, labels: Labels) -> None:
        series = self._metrics.series[name].labels(*labels)
        if isinstance(series, Counter):
            series.inc(value)
        else:
            series.observe(value)

    def labels_of_part(self, part: str) -> Labels:
        return self.labels[0], part


def _stop_reason(ctx: ClientRequestContext, cause: BaseException | None) -> str:
    if cause is not None and not isinstance(cause, Exception):
        return "cancelled"
    if client.has_succeeded(ctx, cause):
        return "none"
    reason = ctx.log.root.stop_reason
    # Without a stop reason, another decorator raised, or retried until a failure.
    return "error" if reason is None else reason.value
