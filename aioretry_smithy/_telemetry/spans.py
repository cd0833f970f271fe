"""Make spans and metrics of calls, once an OpenTelemetry SDK is set up."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.context import (
    _SUPPRESS_HTTP_INSTRUMENTATION_KEY,
    _SUPPRESS_INSTRUMENTATION_KEY,
)
from opentelemetry.propagate import get_global_textmap

from .. import __version__
from .._errors import bad_argument
from .._log.error_text import describe_error
from .._request.request import HttpRequest
from .._text.printable import encodable
from .client import (
    CALL_ID,
    DURATION_BUCKETS,
    Attributes,
    CallObservation,
    Names,
    Subject,
    TelemetryClient,
    Traffic,
    error_type,
    log_error,
    log_errors,
)
from .series import SERIES, Series, ThingKind, ThingT, WeakRegistry, one_per_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextvars import Token

    from opentelemetry.propagators.textmap import TextMapPropagator

    from .._call.call import Call
    from .._context.client import ClientT
    from .._context.context import ClientRequestContext
    from .._text.mask import Mask


_NAMES: Final = {
    "attempt_duration_seconds": "http.client.request.duration",
    "connection_wait_seconds": "aioretry_smithy.connection.wait_time",
}
"""The names that the conventions for HTTP have."""


TrafficInstruments: TypeAlias = Traffic[metrics.Counter, metrics.Histogram]
"""The instruments for attempts and calls, of HTTP or of functions."""


def _histogram(meter: metrics.Meter, name: str) -> metrics.Histogram:
    series = SERIES[name]
    return meter.create_histogram(
        _NAMES.get(series.name, series.instrument),
        series.unit,
        series.text,
        explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
    )


def _counter(meter: metrics.Meter, name: str) -> metrics.Counter:
    series = SERIES[name]
    return meter.create_counter(series.instrument, series.unit, series.text)


class ThingInstruments(Generic[ThingT]):
    """The instruments for things of a kind, and those things, which gauges show.

    Those of a meter are the same for all that tell of the kind, in detail or not.
    """

    def __init__(self, kind: ThingKind[ThingT], meter: metrics.Meter) -> None:
        self._kind = kind
        self._names = Names()
        self._things: WeakRegistry[ThingT] = WeakRegistry()
        self._detailed: WeakRegistry[ThingT] = WeakRegistry()
        self._counters = {name: _counter(meter, name) for name in kind.counters}
        create: Callable[..., object] = meter.create_observable_gauge
        if kind.is_additive:
            create = meter.create_observable_up_down_counter
        for name in kind.gauges:
            series = SERIES[name]
            observe = [partial(self._observe, series)]
            create(series.instrument, observe, series.unit, series.text)

    def show(self, thing: ThingT, /, *, detailed: bool) -> None:
        """Observe the gauges of a thing from now on, with details if *detailed*."""
        self._things.add(thing)
        if detailed:
            self._detailed.add(thing)

    note = show

    def count(self, name: str, thing: ThingT, /, *labels: str) -> None:
        """Count an event under the labels that follow the name of the thing."""
        attributes = self._attributes(SERIES[name], thing, labels)
        self._counters[name].add(1, attributes)

    def _attributes(
        self, series: Series, thing: ThingT, labels: tuple[str, ...]
    ) -> dict[str, str]:
        if len(labels) == len(series.labels):
            # The first one is an endpoint.
            labels = self._names[labels[0]], *labels[1:]
        return series.attributes_of((encodable(thing.name), *labels))

    def _observe(
        self, series: Series, options: metrics.CallbackOptions
    ) -> Iterator[metrics.Observation]:
        detailed = {id(thing) for thing in self._detailed.all()}
        read = self._kind.gauges[series.name]
        for thing in self._things.all():
            for labels, value in read(thing, id(thing) in detailed):
                yield metrics.Observation(
                    value, self._attributes(series, thing, labels)
                )


# Of the scope: its name, its version, and the first stable conventions for HTTP.
_SCOPE: Final = (
    "aioretry_smithy",
    __version__,
    "https://opentelemetry.io/schemas/1.23.0",
)
_API: Final = ("opentelemetry.trace", "opentelemetry.metrics")
_NO_OP: Final = (trace.NoOpTracerProvider, metrics.NoOpMeterProvider)

P = TypeVar("P")
V = TypeVar("V")


class FromProvider(Generic[P, V]):
    """Makes a tracer or instruments as soon as a provider is configured.

    A provider has a method called *function*, and *current* returns the global one.
    What *make* returns is None where it would do nothing.
    """

    provider: P | None
    """The provider; None for the global one, or for a proxy of it."""

    def __init__(
        self,
        name: str,
        provider: P | None,
        function: str,
        current: Callable[[], P],
        make: Callable[[P], V | None],
    ) -> None:
        check_has(name, provider, function)
        stands_in = _is_mute(provider) and not isinstance(provider, _NO_OP)
        self.provider = None if stands_in else provider
        self._current, self._make = current, make
        # In one piece, so that no other thread finds half of it.
        self._found: tuple[P | None, V | None] = None, None

    def get(self) -> V | None:
        """Return the tracer or the instruments; None without a provider."""
        provider = self._current() if self.provider is None else self.provider
        asked, made = self._found
        if provider is not asked:
            made = None if _is_mute(provider) else self._make(provider)
            self._found = provider, made
        return made


def tracer_from(
    provider: trace.TracerProvider | None,
) -> FromProvider[trace.TracerProvider, trace.Tracer]:
    """Return a finder of the tracer of a provider; of the global one for None."""

    def make(provider: trace.TracerProvider) -> trace.Tracer | None:
        tracer = provider.get_tracer(*_SCOPE)
        return None if _is_mute(tracer) else tracer

    current = trace.get_tracer_provider
    return FromProvider("tracer_provider", provider, "get_tracer", current, make)


def instruments_from(
    provider: metrics.MeterProvider | None, *, is_http: bool
) -> FromProvider[metrics.MeterProvider, TrafficInstruments]:
    """Return a finder of the instruments for calls; of the global provider for None."""

    def new(meter: metrics.Meter) -> TrafficInstruments:
        counter, histogram = partial(_counter, meter), partial(_histogram, meter)
        return Traffic(counter, histogram, is_http=is_http)

    return _made_from(provider, (Traffic, is_http), new)


def things_from(
    provider: metrics.MeterProvider | None, kind: ThingKind[ThingT]
) -> FromProvider[metrics.MeterProvider, ThingInstruments[ThingT]]:
    """Return a finder of the instruments for the things of a kind."""
    return _made_from(provider, kind, partial(ThingInstruments, kind))


def _made_from(
    provider: metrics.MeterProvider | None,
    key: object,
    new: Callable[[metrics.Meter], V],
) -> FromProvider[metrics.MeterProvider, V]:
    def make(provider: metrics.MeterProvider) -> V | None:
        meter = provider.get_meter(*_SCOPE)
        # An SDK keeps the first instrument of a name, and does not collect from later
        # ones.
        if _is_mute(meter):
            return None
        return one_per_registry(provider, key, lambda: new(meter))

    current = metrics.get_meter_provider
    return FromProvider("meter_provider", provider, "get_meter", current, make)


def check_has(name: str, value: object, function: str) -> None:
    """Refuse an argument that is neither None nor an object with a function.

    Raises:
        ValueError: It is neither; a class is none, though it has the function too.
    """
    if value is None:
        return
    if isinstance(value, type) or not callable(getattr(value, function, None)):
        raise bad_argument(name, value, f"None, or an object with {function}()")


def _is_mute(found: object) -> bool:
    # Objects of the API itself do nothing; those that do are of an SDK.
    return type(found).__module__.startswith(_API)


_OURS: Final = "aioretry_smithy"
_SUPPRESSED_KEYS: Final = (
    _SUPPRESS_INSTRUMENTATION_KEY,
    "suppress_instrumentation",
)


class Telemetry(NamedTuple):
    """The checked arguments of ``new_decorator()``."""

    tracer: FromProvider[trace.TracerProvider, trace.Tracer]
    instruments: FromProvider[metrics.MeterProvider, TrafficInstruments]
    propagator: TextMapPropagator | None

    @property
    def target(self) -> tuple[int, int]:
        """The providers in use; equal for clients with the same providers."""
        return id(self.tracer.provider), id(self.instruments.provider)


def is_suppressed() -> bool:
    """Say whether instrumentation is switched off here, as exporters do.

    That an attempt of ours keeps other instrumentations quiet does not count: what is
    called in its course through another session is worth a span of its own.
    """
    is_hushed = any(contexts.get_value(key) for key in _SUPPRESSED_KEYS)
    hushed_by = contexts.get_value(_SUPPRESS_HTTP_INSTRUMENTATION_KEY)
    return is_hushed or hushed_by not in (None, False, _OURS)


class Traced(CallObservation):
    """A span, current while the delegate runs, and the measurements at its end.

    The server gets its context in headers, if no other span stands further in.
    """

    _kind: trace.SpanKind
    _name: str
    _token: Token[contexts.Context]

    def __init__(
        self,
        telemetry: Telemetry,
        client: TelemetryClient[Any],
        ctx: ClientRequestContext,
        request: object,
        subject: Subject,
    ) -> None:
        self.request = request
        self._subject = subject
        self._prepare(client, ctx)
        self._instruments = telemetry.instruments.get()
        self._loop = asyncio.get_running_loop()
        self._start = nanoseconds(ctx.call, self._loop.time())
        self._span: trace.Span | None = None
        # Measured with it, a long duration leads to the span that took so long.
        self._context: contexts.Context | None = None
        self._tracer = tracer = telemetry.tracer.get()
        if tracer is not None:
            self._open(tracer, ctx)
        if self._context is not None:
            # A server gets a span in headers; a function runs in it.
            if client.is_innermost and isinstance(request, HttpRequest):
                self._inject(telemetry.propagator, self._context, ctx.call)
            self._token = contexts.attach(self._context)

    @abstractmethod
    def _prepare(
        self, client: TelemetryClient[ClientT], ctx: ClientRequestContext
    ) -> None:
        """Note how far the call has come before."""

    def _first_attributes(self, ctx: ClientRequestContext) -> Attributes:
        return self._subject.shown

    @abstractmethod
    def _last_attributes(
        self, ctx: ClientRequestContext, cause: BaseException | None
    ) -> Attributes: ...

    @abstractmethod
    def _measure(
        self, instruments: TrafficInstruments, seconds: float, attributes: Attributes
    ) -> None: ...

    def _error_type(
        self, ctx: ClientRequestContext, cause: BaseException | None
    ) -> str | None:
        return error_type(ctx, cause)

    def _add_events(self, span: trace.Span, ctx: ClientRequestContext) -> None:
        """Add the attributes of the outcome."""

    def _open(self, tracer: trace.Tracer, ctx: ClientRequestContext) -> None:
        try:
            span = tracer.start_span(
                self._name.format(self._subject.name),
                kind=self._kind,
                attributes=self._first_attributes(ctx),
                start_time=self._start,
            )
            # The attempts of a call may have spans of other instrumentation.
            hushed = _OURS if self._kind is trace.SpanKind.CLIENT else False
            context = contexts.set_value(_SUPPRESS_HTTP_INSTRUMENTATION_KEY, hushed)
            self._context = trace.set_span_in_context(span, context)
            self._span = span
        except Exception as error:
            # Measurements do not depend on it.
            log_error(error)

    def _inject(
        self,
        propagator: TextMapPropagator | None,
        context: contexts.Context,
        call: Call,
    ) -> None:
        try:
            carrier: dict[str, str] = {}
            chosen = get_global_textmap() if propagator is None else propagator
            chosen.inject(carrier, context=context)
            headers = self.request.headers
            if "traceparent" in carrier:
                # It would belong to the trace that the caller's own header named.
                headers.popall("tracestate", None)
                if "tracestate" in (call.default_headers or ()):
                    # Empty, for otherwise aiohttp adds that of the session.
                    headers["tracestate"] = ""
            headers.update(carrier)
            if carrier:
                self.request = self.request.replace(headers=headers)
        except Exception as error:
            log_error(error)

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        """End the span, and measure."""
        if self._span is not None:
            # A coroutine that is thrown away ends wherever the garbage is collected.
            is_lost = isinstance(cause, GeneratorExit)
            if not is_lost or contexts.get_current() is self._context:
                contexts.detach(self._token)
            if not self._span.is_recording():
                self._span = None
        if self._span is None and self._instruments is None:
            return
        end = nanoseconds(ctx.call, self._loop.time())
        last = self._last_attributes(ctx, cause)
        failure = self._error_type(ctx, cause)
        if failure is not None:
            last["error.type"] = failure
        if not ctx.log.sent:
            last["aioretry_smithy.sent"] = False
        try:
            if self._instruments is not None:
                seconds = (end - self._start) / 1e9
                attributes = self._subject.measured | last
                log_errors(
                    partial(self._measure, self._instruments, seconds, attributes)
                )
        finally:
            if self._span is not None:
                log_errors(partial(self._close, self._span, ctx, cause, end, last))

    def _close(
        self,
        span: trace.Span,
        ctx: ClientRequestContext,
        cause: BaseException | None,
        end: int,
        last: Attributes,
    ) -> None:
        try:
            span.set_attribute(CALL_ID, ctx.log.id)
            span.set_attributes(last)
            self._add_events(span, ctx)
            failure = last.get("error.type")
            if failure is not None and cause is not None:
                show_failure(span, str(failure), cause, ctx.log.mask, end)
            elif failure is not None:
                span.set_status(trace.StatusCode.ERROR)
        finally:
            span.end(end)


def show_failure(
    span: trace.Span, kind: str, cause: BaseException, mask: Mask, time: int
) -> None:
    """Show the failure in a span, credentials hidden."""
    description = describe_error(cause, mask)
    message = description.removeprefix(type(cause).__name__)
    event = {"exception.type": kind, "exception.message": message.removeprefix(": ")}
    span.add_event("exception", event, time)
    span.set_status(trace.StatusCode.ERROR, description)


def nanoseconds(call: Call, time: float) -> int:
    """Return a time of the event loop as one of the day.

    All spans of a call, and of the calls inside, count from its one start, so they fit
    into each other though the clock of the machine may be set meanwhile.
    """
    wall_clock, started = call.epoch
    return round(wall_clock * 1e6) * 1000 + round((time - started) * 1e9)
