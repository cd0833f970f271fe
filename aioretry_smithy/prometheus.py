"""Count attempts, calls, circuit breakers, budgets and limits for Prometheus.

Needs the extra ``prometheus``, which installs ``prometheus-client``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ._errors import missing_extra
from ._facade import publish

try:
    from prometheus_client import REGISTRY, CollectorRegistry
except ModuleNotFoundError as _cause:
    raise missing_extra("prometheus", _cause) from _cause

from ._context.client import Decorator, HttpClient, RpcClient, RpcDecorator
from ._request.keys import service_key
from ._telemetry.client import known_method
from ._telemetry.prometheus_metrics import Labels, MeteredClient, metrics_in, things_in
from ._telemetry.series import BreakerTelling, BudgetTelling, GroupTelling, LimitTelling

if TYPE_CHECKING:
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
        return self._metrics.names[service_key(request) or ""], known_method(request)


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


class CircuitBreakerMetrics(BreakerTelling):
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


class RetryBudgetMetrics(BudgetTelling):
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


class EndpointGroupMetrics(GroupTelling):
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


class ConcurrencyLimitMetrics(LimitTelling):
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
