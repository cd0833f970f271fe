"""Make OpenTelemetry spans and metrics of every attempt and every call.

Needs the extra ``opentelemetry``, which installs the API only.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ._errors import missing_extra
from ._facade import publish

try:
    from opentelemetry.trace import NoOpTracerProvider

    from ._telemetry.instruments import (
        TrafficInstruments,
        check_has,
        instruments_from,
        things_from,
        tracer_from,
    )
    from ._telemetry.spans import (
        Telemetry,
        TracedAttempt,
        TracedClient,
        TracedRpcAttempt,
    )
except ModuleNotFoundError as _cause:
    raise missing_extra("opentelemetry", _cause) from _cause

from ._context.client import Decorator, HttpClient, RpcClient, RpcDecorator
from ._telemetry.client import Subject, http_subject, rpc_subject
from ._telemetry.series import BreakerTelling, BudgetTelling, GroupTelling, LimitTelling

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.trace import TracerProvider

    from ._context.context import ClientRequestContext
    from ._request.request import HttpRequest, RpcRequest

__all__ = [
    "CircuitBreakerMetrics",
    "ConcurrencyLimitMetrics",
    "EndpointGroupMetrics",
    "OpenTelemetryMetrics",
    "RetryBudgetMetrics",
    "TracingClient",
    "TracingRpcClient",
]


class TracingClient(TracedClient[HttpClient]):
    """Makes spans and metrics of attempts and calls.

    Inside the retrying client it sees attempts: each is a CLIENT span by the semantic
    conventions for HTTP, and its context is sent in the headers. Outside it sees
    calls: each is an INTERNAL span around its attempts. Put the same decorator in both
    places. In a chain that does not retry, one place is enough, and the call is an
    attempt. Only :class:`~aioretry_smithy.RetryingClient` is recognised as retrying;
    around a retrying decorator of your own put tracing on both sides.

    Without an SDK, calls pass through. An error of an SDK, an exporter or a
    propagator is logged and changes nothing for the call.

    Args:
        delegate: The next client inwards.
        telemetry: The arguments of :meth:`new_decorator`, checked.
    """

    _serves = "sessions"
    _counterpart = "TracingRpcClient"
    _attempt = TracedAttempt

    @classmethod
    def new_decorator(
        cls,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        propagator: TextMapPropagator | None = None,
    ) -> Decorator:
        """Make a decorator for a session builder, to be used in one place or in two.

        Args:
            tracer_provider: Makes the spans; by default the global one, even if it
                is set later. ``NoOpTracerProvider()`` for no spans.
            meter_provider: The same for the metrics.
            propagator: Writes the context of a span into the headers of the request;
                by default the global one.

        Raises:
            ValueError: An argument is not as described.

        >>> tracing = TracingClient.new_decorator()
        >>> builder = (
        ...     SessionBuilder("https://api.example.com")
        ...     .decorator(tracing)
        ...     .decorator(RetryingClient.new_decorator(RetryStrategy.failsafe()))
        ...     .decorator(tracing)
        ... )
        """
        check_has("propagator", propagator, "inject")
        instruments = instruments_from(meter_provider, is_http=True)
        telemetry = Telemetry(tracer_from(tracer_provider), instruments, propagator)
        return partial(cls, telemetry=telemetry)

    def _subject(
        self,
        ctx: ClientRequestContext,
        request: HttpRequest,
        instruments: TrafficInstruments | None,
    ) -> Subject:
        return http_subject(request)


class TracingRpcClient(TracedClient[RpcClient]):
    """Makes spans and metrics of the calls of a function, and of their attempts.

    The same as :class:`TracingClient` for :func:`~aioretry_smithy.rpc`: put one
    decorator on both sides of the retrying client. All spans are INTERNAL and have the
    name of the call. The spans of the calls that an attempt makes, of HTTP or of other
    functions, are inside that of the attempt.

    Args:
        delegate: The next client inwards.
        telemetry: The arguments of :meth:`new_decorator`, checked.
    """

    _serves = "functions"
    _counterpart = "TracingClient"
    _attempt = TracedRpcAttempt

    @classmethod
    def new_decorator(
        cls,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> RpcDecorator:
        """Make a decorator for functions, to be used in one place or in two.

        Args:
            tracer_provider: Makes the spans; by default the global one, even if it
                is set later. ``NoOpTracerProvider()`` for no spans.
            meter_provider: The same for the metrics.

        Raises:
            ValueError: An argument is not as described.

        >>> tracing = TracingRpcClient.new_decorator()
        """
        instruments = instruments_from(meter_provider, is_http=False)
        telemetry = Telemetry(tracer_from(tracer_provider), instruments, None)
        return partial(cls, telemetry=telemetry)

    def _subject(
        self,
        ctx: ClientRequestContext,
        request: RpcRequest,
        instruments: TrafficInstruments | None,
    ) -> Subject:
        name = ctx.log.mask.text(request.name)
        return rpc_subject(name, instruments.names[name] if instruments else name)


class CircuitBreakerMetrics(BreakerTelling):
    """Measures circuit breakers: their states, changes of state, rejections.

    One listener may serve any number of circuit breakers. Names tell them apart, so
    give each a name of its own: of several with one name, the one with the latest event
    is shown. A state shows from the first event on.

    Args:
        meter_provider: Makes the metrics; by default the global one, even if it is set
            later.

    Raises:
        ValueError: *meter_provider* is no MeterProvider.

    >>> metrics = CircuitBreakerMetrics()
    >>> decorator = CircuitBreakerClient.new_per_host_decorator(
    ...     lambda host: CircuitBreaker(host, listeners=[metrics])
    ... )
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        self._backend = things_from(meter_provider, self._kind).get


class RetryBudgetMetrics(BudgetTelling):
    """Measures retry budgets: their tokens, and the retries refused.

    One listener may serve any number of budgets. Names tell them apart: of several with
    one name, the one with the latest event is shown.

    Args:
        meter_provider: Makes the metrics; by default the global one, even if it is set
            later.

    Raises:
        ValueError: *meter_provider* is no MeterProvider.

    >>> limiter = RetryBudget.per_host(listeners=[RetryBudgetMetrics()])
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        self._backend = things_from(meter_provider, self._kind).get


class EndpointGroupMetrics(GroupTelling):
    """Measures endpoint groups: how many endpoints are well, how often they were out.

    One listener may serve any number of groups. Names tell them apart: of several with
    one name, the last that was new is shown. A group shows from its first use on, if
    the *meter_provider* is there by then.

    Args:
        meter_provider: Makes the metrics; by default the global one, even if it is set
            later.
        by_endpoint: Whether an attribute ``aioretry_smithy.endpoint`` tells endpoints
            from one another, which are many where addresses come and go.

    Raises:
        ValueError: An argument is not as described.

    >>> metrics = EndpointGroupMetrics()
    >>> group = EndpointGroup.dns("http://orders:8080", listener=metrics)
    """

    def __init__(
        self, meter_provider: MeterProvider | None = None, *, by_endpoint: bool = False
    ) -> None:
        self._backend = things_from(meter_provider, self._kind).get
        self._set_detail(by_endpoint)


class ConcurrencyLimitMetrics(LimitTelling):
    """Measures concurrency limits: their limit, requests in flight, pending, refused.

    One listener may serve any number of limits. Names tell them apart: of several with
    one name, the one with the latest event is shown. A limit shows from its first
    request on, if the *meter_provider* is there by then.

    Args:
        meter_provider: Makes the metrics; by default the global one, even if it is set
            later.

    Raises:
        ValueError: *meter_provider* is no MeterProvider.

    >>> metrics = ConcurrencyLimitMetrics()
    >>> decorator = ConcurrencyLimitingClient.new_per_host_decorator(
    ...     lambda host: ConcurrencyLimit.aimd(name=host, listeners=[metrics])
    ... )
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        self._backend = things_from(meter_provider, self._kind).get


class OpenTelemetryMetrics:
    """Counts all that happens in a chain, by one argument of the standard chain.

    Give it to :meth:`~aioretry_smithy.SessionBuilder.standard` or
    :func:`~aioretry_smithy.decorate_standard` as ``metrics=``. In a chain of your own
    put :meth:`client` on both sides of the retrying client, and the listeners into the
    parts that you make.

    Args:
        meter_provider: Makes the metrics; by default the global one, even if it is set
            later.
        by_endpoint: As for :class:`EndpointGroupMetrics`.

    Raises:
        ValueError: An argument is not as described.

    >>> metrics = OpenTelemetryMetrics()
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
        self, meter_provider: MeterProvider | None = None, *, by_endpoint: bool = False
    ) -> None:
        self.circuit_breakers = CircuitBreakerMetrics(meter_provider)
        self.retry_budgets = RetryBudgetMetrics(meter_provider)
        self.concurrency_limits = ConcurrencyLimitMetrics(meter_provider)
        self.endpoint_groups = EndpointGroupMetrics(
            meter_provider, by_endpoint=by_endpoint
        )
        mute = NoOpTracerProvider()
        self._client = TracingClient.new_decorator(mute, meter_provider)
        self._rpc_client = TracingRpcClient.new_decorator(mute, meter_provider)

    def client(self) -> Decorator:
        """Return the decorator for sessions, for both sides of the retrying client."""
        return self._client

    def rpc_client(self) -> RpcDecorator:
        """Return the same for functions of :func:`~aioretry_smithy.rpc`."""
        return self._rpc_client


publish()
