"""Make the spans of attempts, calls and failed bodies, and measure them."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.context import (
    _SUPPRESS_HTTP_INSTRUMENTATION_KEY,
    _SUPPRESS_INSTRUMENTATION_KEY,
)
from opentelemetry.propagate import get_global_textmap

from .._call.recorder import cause_of
from .._context.client import ClientT
from .._log.error_text import describe_error
from .._log.request_log import log_of
from .._log.timeline import until_next
from .._request.request import HttpRequest
from .._text.mask import HIDDEN, Mask
from .._text.printable import encodable
from .client import (
    ANOTHER_METHOD,
    CALL_ID,
    Attributes,
    Observation,
    Subject,
    TelemetryClient,
    call_error_type,
    class_name,
    connection_waits,
    error_type,
    log_errors,
    peer_attributes,
)

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.propagators.textmap import TextMapPropagator

    from .._call.call import Call
    from .._call.outcome import Request
    from .._call.record import Record
    from .._context.context import ClientRequestContext
    from .instruments import FromProvider, TrafficInstruments


_OURS: Final = "aioretry_smithy"
_CONNECTION: Final = "aioretry_smithy.connection"
_VERSION: Final = "network.protocol.version"
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


class Traced(Observation[Attributes]):
    """A span, current while the delegate runs, and the measurements at its end.

    The server gets its context in headers, if no other span stands further in.
    """

    _kind: trace.SpanKind
    _name: str
    _token: Token[contexts.Context]

    def __init__(
        self,
        client: TracedClient[Any],
        ctx: ClientRequestContext,
        request: object,
        subject: Subject,
    ) -> None:
        super().__init__(client, ctx, request, subject.measured)
        telemetry = client.telemetry
        self._subject = subject
        self._instruments = telemetry.instruments.get()
        self._start = nanoseconds(ctx.call, self.started)
        self._span: trace.Span | None = None
        # Measured with it, a long duration leads to the span that took so long.
        self._context: contexts.Context | None = None
        self._tracer = tracer = telemetry.tracer.get()
        if tracer is not None:
            # Measurements do not depend on it.
            log_errors(partial(self._open, tracer, ctx))
        if self._context is not None:
            # A server gets a span in headers; a function runs in it.
            if client.is_innermost and isinstance(request, HttpRequest):
                log_errors(
                    partial(self._inject, telemetry.propagator, self._context, ctx.call)
                )
            self._token = contexts.attach(self._context)

    def _first_attributes(self, ctx: ClientRequestContext) -> Attributes:
        return self._subject.shown

    @abstractmethod
    def _last_attributes(
        self, ctx: ClientRequestContext, cause: BaseException | None
    ) -> Attributes: ...

    def _error_type(
        self, ctx: ClientRequestContext, cause: BaseException | None
    ) -> str | None:
        return error_type(ctx, cause)

    def _add_events(self, span: trace.Span, ctx: ClientRequestContext) -> None:
        """Add the attributes of the outcome."""

    def _open(self, tracer: trace.Tracer, ctx: ClientRequestContext) -> None:
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

    def _inject(
        self,
        propagator: TextMapPropagator | None,
        context: contexts.Context,
        call: Call,
    ) -> None:
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

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        """End the span, and record the metrics."""
        if self._span is not None:
            # A coroutine that is thrown away ends wherever the garbage is collected.
            is_lost = isinstance(cause, GeneratorExit)
            if not is_lost or contexts.get_current() is self._context:
                contexts.detach(self._token)
            if not self._span.is_recording():
                self._span = None
        if self._span is None and self._instruments is None:
            return
        end = nanoseconds(ctx.call, self.loop.time())
        last = self._last_attributes(ctx, cause)
        failure = self._error_type(ctx, cause)
        if failure is not None:
            last["error.type"] = failure
        if not ctx.log.sent:
            last["aioretry_smithy.sent"] = False
        try:
            if self._instruments is not None:
                seconds = (end - self._start) / 1e9
                log_errors(partial(self.measure, ctx, seconds, self.labels | last))
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

    def record(self, name: str, value: float, labels: Attributes) -> None:
        """Add a value to a series, as measured in this span."""
        if self._instruments is None or (name == "retries" and not value):
            return
        if name != "attempt_duration_seconds":
            labels = {key: each for key, each in labels.items() if key != _VERSION}
        self._instruments.series[name](value, labels, self._context)

    def labels_of_part(self, part: str) -> Attributes:
        """Return the attributes of a wait for a connection, without the method."""
        server = {**self.labels}
        server.pop("http.request.method", None)
        return {**server, f"{_CONNECTION}.part": part}


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


class TracedAttempt(Traced):
    """A CLIENT span, as the conventions for HTTP have it."""

    _kind = trace.SpanKind.CLIENT
    _name = "{}"

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        """End the span, and record the metrics."""
        # By an open circuit further in, so that nothing went out.
        self.sends["refused"] += ctx.record.was_refused
        if self._span is not None and ctx.log.superseded:
            self._span.set_attribute("aioretry_smithy.superseded", True)
        super().end(ctx, cause)
        tracer, context = self._tracer, self._context
        if tracer is None or context is None or self._span is None:
            return
        if not ctx.log.is_complete:
            trace_body(tracer, context, ctx.call, ctx.record)

    def _first_attributes(self, ctx: ClientRequestContext) -> Attributes:
        request = self.request
        method = self._subject.measured["http.request.method"]
        attributes: Attributes = {"http.request.method": method, **self._subject.shown}
        if attributes["http.request.method"] == ANOTHER_METHOD:
            attributes["http.request.method_original"] = encodable(request.method)
        if self._subject.shown:
            url = ctx.log.mask.text(str(request.full_url()))
            attributes["url.full"] = url.replace(
                f"//{HIDDEN}@", "//REDACTED:REDACTED@"
            ).replace(f"={HIDDEN}", "=REDACTED")
        sent_before = self.number - self.sends["refused"]
        if sent_before > 0:
            attributes["http.request.resend_count"] = sent_before
        if self.is_hedge:
            attributes["aioretry_smithy.hedge"] = True
        attributes.update(peer_attributes(ctx, request))
        return attributes

    def _last_attributes(
        self, ctx: ClientRequestContext, cause: BaseException | None
    ) -> Attributes:
        if cause is not None:
            return {}
        attributes: Attributes = {"http.response.status_code": self.response.status}
        version = self.response.version
        if version is not None:
            attributes[_VERSION] = f"{version.major}.{version.minor}"
        return attributes

    def _add_events(self, span: trace.Span, ctx: ClientRequestContext) -> None:
        times = ctx.record.connection
        if times is not None:
            for part, seconds in connection_waits(ctx).items():
                span.set_attribute(f"{_CONNECTION}.{part}", seconds)
            span.set_attribute(f"{_CONNECTION}.reused", times.reused)


class TracedRpcAttempt(TracedAttempt):
    """An INTERNAL span around the function, calls inside included."""

    _kind = trace.SpanKind.INTERNAL

    def _first_attributes(self, ctx: ClientRequestContext) -> Attributes:
        attempt: Attributes = {"aioretry_smithy.attempt": ctx.attempt or 1}
        return self._subject.shown | attempt

    def _last_attributes(
        self, ctx: ClientRequestContext, cause: BaseException | None
    ) -> Attributes:
        return {}


class TracedCall(Traced):
    """An INTERNAL span around all attempts of a call, and the waits between them.

    The call is retried if a retrying client further in makes the attempts.
    """

    _kind = trace.SpanKind.INTERNAL
    _name = "call {}"

    def _open(self, tracer: trace.Tracer, ctx: ClientRequestContext) -> None:
        self._attempts_before = ctx.call.attempts_made
        self._last_before = next(
            (each.attempt or 0 for each in reversed(ctx.log.children)), 0
        )
        super()._open(tracer, ctx)

    def _error_type(
        self, ctx: ClientRequestContext, cause: BaseException | None
    ) -> str | None:
        return call_error_type(ctx, cause)

    def _last_attributes(
        self, ctx: ClientRequestContext, cause: BaseException | None
    ) -> Attributes:
        stop_reason = ctx.log.root.stop_reason
        if stop_reason is None:
            return {}
        return {"aioretry_smithy.stop_reason": str(stop_reason)}

    def _add_events(self, span: trace.Span, ctx: ClientRequestContext) -> None:
        last = self._last_before
        requests = [each for each in ctx.log.children if (each.attempt or 0) > last]
        number = ctx.call.attempts_made - self._attempts_before
        # Where nothing retries, nobody gives the attempt a log of its own.
        number = number if requests or self._client.surrounds_retries else 1
        span.set_attribute("aioretry_smithy.attempts", number)
        # A wait ends where the next attempt begins; a body may come before the wait.
        now = self.loop.time()
        spans = until_next(requests, now)
        ends = [spans[0].start if spans else now, *(span.end for span in spans)]
        for log, end in zip((ctx.log, *requests), ends, strict=True):
            if log.delay is None or log.delay_source is None:
                continue
            attributes: Attributes = {"aioretry_smithy.attempt": log.attempt or 0}
            name = "aioretry_smithy.resend"
            if log.delay_source != "stale_connection":
                name = "aioretry_smithy.wait"
                attributes["aioretry_smithy.delay"] = log.delay
                attributes["aioretry_smithy.delay_source"] = log.delay_source
            span.add_event(name, attributes, nanoseconds(ctx.call, end - log.delay))


def trace_body(
    tracer: trace.Tracer, context: contexts.Context, call: Call, record: Record
) -> None:
    """Wait for the end of a body, and make a span of it where it failed.

    That is a child of the span of the attempt, which *context* has.
    """

    def look() -> None:
        if record.outcome.body_ended is None:
            trace_body(tracer, context, call, record)
            return
        log_errors(partial(_trace_failure, tracer, context, call, record))

    call.wait_with(look)


def _trace_failure(
    tracer: trace.Tracer, context: contexts.Context, call: Call, record: Record
) -> None:
    cause, outcome = cause_of(record), record.outcome
    if cause is None or outcome.ended is None or outcome.body_ended is None:
        return
    kind = class_name(cause)
    span = tracer.start_span(
        "response body",
        context=context,
        attributes={"error.type": kind, CALL_ID: log_of(call, record).id},
        start_time=nanoseconds(call, outcome.ended),
    )
    end = nanoseconds(call, outcome.body_ended)
    show_failure(span, kind, cause, call.mask, end)
    span.end(end)


class TracedClient(TelemetryClient[ClientT]):
    """Makes spans and metrics of calls and attempts of any kind.

    Args:
        delegate: The next client inwards.
        telemetry: The arguments of ``new_decorator()``, checked.
    """

    _attempt: ClassVar[type[TracedAttempt]]

    def __init__(self, delegate: ClientT, telemetry: Telemetry) -> None:
        super().__init__(delegate, telemetry.target)
        self.telemetry = telemetry

    def begin(
        self, ctx: ClientRequestContext, request: object
    ) -> Observation[Attributes] | None:
        """Begin the span of an attempt, or of a call.

        None where an SDK is not set up, or is switched off here.
        """
        telemetry = self.telemetry
        instruments = telemetry.instruments.get()
        if telemetry.tracer.get() is None and instruments is None:
            return None
        if is_suppressed():
            return None
        kind = TracedCall if self.sees_call(ctx) else self._attempt
        return kind(self, ctx, request, self._subject(ctx, request, instruments))

    @abstractmethod
    def _subject(
        self,
        ctx: ClientRequestContext,
        request: Request,
        instruments: TrafficInstruments | None,
    ) -> Subject:
        """Return the name and the attributes of a call."""
