"""Count attempts, calls, circuit breakers, budgets and limits for Prometheus.

Needs the extra ``prometheus``, which installs ``prometheus-client``.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar
from weakref import WeakSet

from ._errors import bad_argument, missing_extra
from ._facade import publish

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
except ModuleNotFoundError as _cause:
    raise missing_extra("prometheus", _cause) from _cause

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ._context.client import ClientT, Decorator, HttpClient, RpcClient, RpcDecorator
from ._request.keys import service_key
from ._telemetry import client, series
from ._telemetry.series import PREFIX, SERIES, ThingKind, ThingT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ._call.outcome import Request
    from ._context.context import ClientRequestContext
    from ._request.request import HttpRequest, RpcRequest

__all__ = [
    "CircuitBreakerMetrics",
    "ConcurrencyLimitMetrics",
    "EndpointGroupMetrics",
    "MetricsClient",
    "MetricsRpcClient",
    "PrometheusMetrics",
    "RetryBudgetMetrics",
]

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
        self._things: series.WeakRegistry[ThingT] = series.WeakRegistry()
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
            row = SERIES[name]
            family = GaugeMetricFamily(
                f"{PREFIX}{row.name}",
                row.text,
                labels=row.labels_of(detailed=self._detailed),
            )
            for thing in things:
                for labels, value in read(thing, self._detailed):
                    family.add_metric((self._names[thing.name], *labels), value)
            yield family

    describe = collect


def _new(
    kind: type[_SeriesT], name: str, *, detailed: bool = False, **options: Any
) -> _SeriesT:
    """Make the metric of a series, which no registry has yet."""
    row = SERIES[name]
    labels, shown = row.labels_of(detailed=detailed), f"{PREFIX}{row.name}"
    return kind(shown, row.text, labels, registry=None, **options)


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
    return series.one_per_registry(registry, key, new)


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
        return _Timed(self, ctx, request, self._subject(ctx, request))

    @abstractmethod
    def _subject(self, ctx: ClientRequestContext, request: Request) -> Labels:
        """Return the labels of a call."""


class _Timed(client.Observation[Labels]):
    """A call or an attempt that is measured at its end."""

    _client: MeteredClient[Any]

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        outcome = (_stop_reason if self.is_call else client.status_class)(ctx, cause)
        seconds = self.loop.time() - self.started
        self.measure(ctx, seconds, (*self.labels, outcome))

    def record(self, name: str, value: float, labels: Labels) -> None:
        measured = self._client._metrics.series[name].labels(*labels)
        if isinstance(measured, Counter):
            measured.inc(value)
        else:
            measured.observe(value)

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


class MetricsClient(MeteredClient[HttpClient]):
    """Counts and times calls and attempts.

    Put the same decorator in twice: inside the retrying client it sees attempts,
    outside of it calls. In a chain that does not retry, the call is its one attempt.
    Only :class:`~aioretry_smithy.RetryingClient` is recognised as retrying; around a
    retrying decorator of your own put metrics on both sides. In either place it
    measures to the headers of the response, or to the failure.

    Attempts are counted in ``aioretry_smithy_attempts_total``, those after the first of
    a call also in ``aioretry_smithy_retries_total``, and timed in
    ``aioretry_smithy_attempt_duration_seconds``, by ``host``, ``method`` and
    ``status_class``. Calls are counted and timed in
    ``aioretry_smithy_call_duration_seconds``, by ``host``, ``method`` and
    ``stop_reason``.

    Where a session has :meth:`~aioretry_smithy.SessionBuilder.connection_timings`, the
    waits of attempts for a connection are in
    ``aioretry_smithy_connection_wait_seconds``, by ``host`` and ``part``.

    Labels have few values, never a path or a query. After 1024 hosts every further one
    is ``_OTHER``.

    Args:
        delegate: The next client inwards.
        metrics: The metrics of one registry.

    >>> metrics = MetricsClient.new_decorator(CollectorRegistry())
    >>> builder = (
    ...     SessionBuilder("https://api.example.com")
    ...     .decorator(metrics)
    ...     .decorator(RetryingClient.new_decorator(RetryStrategy.failsafe()))
    ...     .decorator(metrics)
    ... )
    """

    _serves = "sessions"
    _counterpart = "MetricsRpcClient"

    @classmethod
    def new_decorator(cls, registry: CollectorRegistry = REGISTRY) -> Decorator:
        """Make a decorator for a session builder.

        Args:
            registry: Holds the metrics; all with the same registry share them.

        Raises:
            ValueError: *registry* is no CollectorRegistry, or has a metric of that name
                from elsewhere.

        >>> decorator = MetricsClient.new_decorator(CollectorRegistry())
        """
        return partial(cls, metrics=metrics_in(registry, is_http=True))

    def _subject(self, ctx: ClientRequestContext, request: HttpRequest) -> Labels:
        return self._metrics.names[service_key(request) or ""], client.known_method(
            request
        )


class MetricsRpcClient(MeteredClient[RpcClient]):
    """Counts and times the calls of functions, and their attempts.

    The same as :class:`MetricsClient` for :func:`~aioretry_smithy.rpc`: put one
    decorator on both sides of the retrying client.

    Attempts are counted in ``aioretry_smithy_rpc_attempts_total``, those after the
    first of a call also in ``aioretry_smithy_rpc_retries_total``, and timed in
    ``aioretry_smithy_rpc_attempt_duration_seconds``, by ``name`` and ``outcome``:
    ``returned``, ``error``, ``refused``, ``unsent`` or ``cancelled``. Calls are counted
    and timed in ``aioretry_smithy_rpc_call_duration_seconds``, by ``name`` and
    ``stop_reason``. After 1024 names every further one is ``_OTHER``.

    Args:
        delegate: The next client inwards.
        metrics: The metrics of one registry.
    """

    _serves = "functions"
    _counterpart = "MetricsClient"

    @classmethod
    def new_decorator(cls, registry: CollectorRegistry = REGISTRY) -> RpcDecorator:
        """Make a decorator for functions.

        Args:
            registry: Holds the metrics; all with the same registry share them.

        Raises:
            ValueError: *registry* is no CollectorRegistry, or has a metric of that name
                from elsewhere.

        >>> decorator = MetricsRpcClient.new_decorator(CollectorRegistry())
        """
        return partial(cls, metrics=metrics_in(registry, is_http=False))

    def _subject(self, ctx: ClientRequestContext, request: RpcRequest) -> Labels:
        return (self._metrics.names[ctx.log.mask.text(request.name)],)


class CircuitBreakerMetrics(series.BreakerTelling):
    """Counts what happens to circuit breakers; a listener for any number of them.

    The series are ``aioretry_smithy_circuit_breaker_state`` and ``_transitions_total``,
    by ``circuit_breaker`` and ``state``, and ``_rejections_total``, by
    ``circuit_breaker``.

    The state is 1 for the present one and 0 for the others. A circuit breaker appears
    with its first event. Those of one name are taken for one; after 1024 names every
    further one is counted as ``_OTHER``, without a state.

    Args:
        registry: Holds the metrics; all with the same registry share them.

    Raises:
        ValueError: *registry* is no CollectorRegistry, or has a metric of that name
            from elsewhere.

    >>> registry = CollectorRegistry()
    >>> breaker = CircuitBreaker("orders", listeners=[CircuitBreakerMetrics(registry)])
    >>> breaker.enter_state(CircuitState.FORCED_OPEN)
    >>> registry.get_sample_value(
    ...     "aioretry_smithy_circuit_breaker_state",
    ...     {"circuit_breaker": "orders", "state": "forced_open"},
    ... )
    1.0
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        metrics = things_in(registry, self._kind)
        self._backend = lambda: metrics


class RetryBudgetMetrics(series.BudgetTelling):
    """Counts what happens to retry budgets; a listener for any number of them.

    The series are ``aioretry_smithy_retry_budget_tokens`` and ``_refusals_total``, by
    ``retry_budget``.

    A budget appears with its first retry, made or refused. Budgets of one name are
    taken for one; after 1024 names every further one is counted as ``_OTHER``, without
    its tokens.

    Args:
        registry: Holds the metrics; all with the same registry share them.

    Raises:
        ValueError: *registry* is no CollectorRegistry, or has a metric of that name
            from elsewhere.

    >>> listener = RetryBudgetMetrics(CollectorRegistry())
    >>> budgets = RetryBudget.per_host(listeners=[listener])
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        metrics = things_in(registry, self._kind)
        self._backend = lambda: metrics


class EndpointGroupMetrics(series.GroupTelling):
    """Counts what happens to endpoint groups; a listener for any number of them.

    The series are ``aioretry_smithy_endpoints``, by ``group`` and ``state``, and
    ``aioretry_smithy_ejections_total``, by ``group`` and ``reason``.

    A group appears when it is used, and its gauges disappear with it. Of several with
    one name the last that was new is shown; after 1024 names every further one is
    counted as ``_OTHER``, without gauges. In multiprocess mode there are no gauges.

    Args:
        registry: Holds the metrics; all with the same registry share them.
        by_endpoint: Whether a label ``endpoint`` tells them from one another, which are
            many where addresses come and go. All with one registry have it, or none.

    Raises:
        ValueError: *registry* is no CollectorRegistry, or has a metric of that name
            from elsewhere; or *by_endpoint* is no bool.

    >>> metrics = EndpointGroupMetrics(CollectorRegistry())
    >>> group = EndpointGroup.dns("http://orders:8080", listener=metrics)
    """

    def __init__(
        self, registry: CollectorRegistry = REGISTRY, *, by_endpoint: bool = False
    ) -> None:
        detailed = self._set_detail(by_endpoint)
        metrics = things_in(registry, self._kind, detailed=detailed)
        self._backend = lambda: metrics


class ConcurrencyLimitMetrics(series.LimitTelling):
    """Counts what happens to concurrency limits; a listener for any number of them.

    The series are ``aioretry_smithy_concurrency_limit_limit``, ``_in_flight``,
    ``_pending`` and ``_refusals_total``, by ``concurrency_limit``.

    A limit appears with its first request, and its gauges disappear with it. Of several
    with one name the last that had an event is shown; after 1024 names every further
    one is counted as ``_OTHER``, without gauges. In multiprocess mode there are no
    gauges.

    Args:
        registry: Holds the metrics; all with the same registry share them.

    Raises:
        ValueError: *registry* is no CollectorRegistry, or has a metric of that name
            from elsewhere.

    >>> metrics = ConcurrencyLimitMetrics(CollectorRegistry())
    >>> decorator = ConcurrencyLimitingClient.new_per_host_decorator(
    ...     lambda host: ConcurrencyLimit.aimd(name=host, listeners=[metrics])
    ... )
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        metrics = things_in(registry, self._kind)
        self._backend = lambda: metrics


class PrometheusMetrics:
    """Counts all that happens in a chain, by one argument of the standard chain.

    Give it to :meth:`~aioretry_smithy.SessionBuilder.standard` or
    :func:`~aioretry_smithy.decorate_standard` as ``metrics=``. In a chain of your own
    put :meth:`client` on both sides of the retrying client, and the listeners into the
    parts that you make.

    Args:
        registry: Holds the metrics; all with the same registry share them.
        by_endpoint: As for :class:`EndpointGroupMetrics`.

    Raises:
        ValueError: *registry* is no CollectorRegistry, or has a metric of that name
            from elsewhere; or *by_endpoint* is no bool.

    >>> metrics = PrometheusMetrics(CollectorRegistry())
    >>> builder = SessionBuilder.standard("https://api.example.com", metrics=metrics)
    """

    circuit_breakers: CircuitBreakerMetrics
    """The listener of circuit breakers."""

    retry_budgets: RetryBudgetMetrics
    """The listener of retry budgets."""

    concurrency_limits: ConcurrencyLimitMetrics
    """The listener of concurrency limits."""

    endpoint_groups: EndpointGroupMetrics
    """The listener of endpoint groups."""

    def __init__(
        self, registry: CollectorRegistry = REGISTRY, *, by_endpoint: bool = False
    ) -> None:
        self.circuit_breakers = CircuitBreakerMetrics(registry)
        self.retry_budgets = RetryBudgetMetrics(registry)
        self.concurrency_limits = ConcurrencyLimitMetrics(registry)
        self.endpoint_groups = EndpointGroupMetrics(registry, by_endpoint=by_endpoint)
        self._client = MetricsClient.new_decorator(registry)
        self._rpc_client = MetricsRpcClient.new_decorator(registry)

    def client(self) -> Decorator:
        """Return the decorator for sessions, for both sides of the retrying client."""
        return self._client

    def rpc_client(self) -> RpcDecorator:
        """Return the same for functions of :func:`~aioretry_smithy.rpc`."""
        return self._rpc_client


publish()
