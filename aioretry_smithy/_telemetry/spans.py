"""Make a span and its context, and measure the call at its end."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from opentelemetry import context as contexts
from opentelemetry.context import (
    _SUPPRESS_HTTP_INSTRUMENTATION_KEY,
    _SUPPRESS_INSTRUMENTATION_KEY,
    Context,
)
from opentelemetry.propagate import get_global_textmap
from opentelemetry.trace import (
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    TracerProvider,
    set_span_in_context,
)

from .._log.error_text import describe_error
from .._request.request import HttpRequest
from .client import (
    CALL_ID,
    Attributes,
    Observation,
    Subject,
    TelemetryClient,
    error_type,
    log_error,
)

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.propagators.textmap import TextMapPropagator

    from .._call.call import Call
    from .._context.client import ClientT
    from .._context.context import ClientRequestContext
    from .._text.mask import Mask
    from .instruments import FromProvider, TrafficInstruments

_OURS: Final = "aioretry_smithy"
_SUPPRESSED_KEYS: Final = (_SUPPRESS_INSTRUMENTATION_KEY, "suppress_instrumentation")


class Telemetry(NamedTuple):
    """The checked arguments of ``new_decorator()``."""

    tracer: FromProvider[TracerProvider, Tracer]
    instruments: FromProvider[MeterProvider, TrafficInstruments]
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


class Traced(Observation):
    """A span, current while the delegate runs, and the measurements at its end.

    The server gets its context in headers, if no other span stands further in.
    """

    _kind: SpanKind
    _name: str
    _token: Token[Context]

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
        self._span: Span | None = None
        # Measured with it, a long duration leads to the span that took so long.
        self._context: Context | None = None
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

    def _add_events(self, span: Span, ctx: ClientRequestContext) -> None:
        """Add the attributes of the outcome."""

    def _open(self, tracer: Tracer, ctx: ClientRequestContext) -> None:
        try:
            span = tracer.start_span(
                self._name.format(self._subject.name),
                kind=self._kind,
                attributes=self._first_attributes(ctx),
                start_time=self._start,
            )
            # The attempts of a call may have spans of other instrumentation.
            hushed = _OURS if self._kind is SpanKind.CLIENT else False
            context = contexts.set_value(_SUPPRESS_HTTP_INSTRUMENTATION_KEY, hushed)
            self._context = set_span_in_context(span, context)
            self._span = span
        except Exception as error:
            # Measurements do not depend on it.
            log_error(error)

    def _inject(
        self, propagator: TextMapPropagator | None, context: Context, call: Call
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
                self._measure(self._instruments, seconds, attributes)
        finally:
            if self._span is not None:
                self._close(self._span, ctx, cause, end, last)

    def _close(
        self,
        span: Span,
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
                span.set_status(StatusCode.ERROR)
        finally:
            span.end(end)


def show_failure(
    span: Span, kind: str, cause: BaseException, mask: Mask, time: int
) -> None:
    """Show the failure in a span, credentials hidden."""
    description = describe_error(cause, mask)
    message = description.removeprefix(type(cause).__name__)
    event = {"exception.type": kind, "exception.message": message.removeprefix(": ")}
    span.add_event("exception", event, time)
    span.set_status(StatusCode.ERROR, description)


def nanoseconds(call: Call, time: float) -> int:
    """Return a time of the event loop as one of the day.

    All spans of a call, and of the calls inside, count from its one start, so they fit
    into each other though the clock of the machine may be set meanwhile.
    """
    wall_clock, started = call.epoch
    return round(wall_clock * 1e6) * 1000 + round((time - started) * 1e9)
