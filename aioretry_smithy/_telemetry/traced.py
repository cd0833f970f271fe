"""Make the spans of attempts, calls and failed bodies, and measure them."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from opentelemetry.trace import Span, SpanKind, Tracer

from .._call.recorder import cause_of
from .._context.client import ClientT
from .._log.request_log import log_of
from .._log.timeline import until_next
from .._text.mask import HIDDEN
from .._text.printable import encodable
from .client import (
    ANOTHER_METHOD,
    CALL_ID,
    Attributes,
    CallObservation,
    HedgeCount,
    Subject,
    TelemetryClient,
    call_error_type,
    class_name,
    connection_waits,
    log_errors,
    peer_attributes,
)
from .spans import Telemetry, Traced, is_suppressed, nanoseconds, show_failure

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from .._call.call import Call
    from .._call.record import Record
    from .._context.context import ClientRequestContext
    from .spans import TrafficInstruments

_SENDS: Final = "aioretry_smithy.opentelemetry.sends"
_CONNECTION: Final = "aioretry_smithy.connection"


class TracedAttempt(Traced):
    """A CLIENT span, as the conventions for HTTP have it."""

    _kind = SpanKind.CLIENT
    _name = "{}"

    def _prepare(
        self, client: TelemetryClient[ClientT], ctx: ClientRequestContext
    ) -> None:
        # How often the call was sent through tracing with these providers.
        key = _SENDS, client.target
        self._sends: Counter[str] = ctx.attributes.setdefault(key, Counter())
        self._number = self._sends["begun"]
        self._sends["begun"] += 1
        self._is_hedge = ctx.attempt is not None and ctx.log.is_hedge

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        """End the span, and measure."""
        self._waits = connection_waits(ctx)
        # By an open circuit further in, so that nothing went out.
        self._sends["refused"] += ctx.record.was_refused
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
        sent_before = self._number - self._sends["refused"]
        if sent_before > 0:
            attributes["http.request.resend_count"] = sent_before
        if self._is_hedge:
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
            attributes["network.protocol.version"] = f"{version.major}.{version.minor}"
        return attributes

    def _add_events(self, span: Span, ctx: ClientRequestContext) -> None:
        times = ctx.record.connection
        if times is not None:
            for part, seconds in self._waits.items():
                span.set_attribute(f"{_CONNECTION}.{part}", seconds)
            span.set_attribute(f"{_CONNECTION}.reused", times.reused)

    def _measure(
        self, instruments: TrafficInstruments, seconds: float, attributes: Attributes
    ) -> None:
        instruments.attempt_duration.record(seconds, attributes, self._context)
        attributes.pop("network.protocol.version", None)
        instruments.attempts.add(1, attributes, self._context)
        if self._number and not self._is_hedge:
            instruments.retries.add(1, attributes, self._context)
        if instruments.connection_wait is not None and self._waits:
            # Whatever is asked for, the way to the server is the same.
            server = {**self._subject.measured}
            server.pop("http.request.method", None)
            for part, waited in self._waits.items():
                of_part = {**server, f"{_CONNECTION}.part": part}
                instruments.connection_wait.record(waited, of_part, self._context)


class TracedRpcAttempt(TracedAttempt):
    """An INTERNAL span around the function, calls inside included."""

    _kind = SpanKind.INTERNAL

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

    _kind = SpanKind.INTERNAL
    _name = "call {}"

    def _prepare(
        self, client: TelemetryClient[ClientT], ctx: ClientRequestContext
    ) -> None:
        self._is_retried = client.surrounds_retries
        is_hedged = client.surrounds_hedges
        self._hedges = HedgeCount(ctx.call) if is_hedged else None
        self._attempts_before = ctx.call.attempts_made
        self._last_before = next(
            (each.attempt or 0 for each in reversed(ctx.log.children)), 0
        )

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        """End the span, and measure."""
        super().end(ctx, cause)
        instruments = self._instruments
        if instruments is not None and self._hedges is not None:
            subject, context = self._subject.measured, self._context
            self._hedges.tell(
                ctx.call,
                lambda kind, number: instruments.hedges[kind].add(
                    number, subject, context
                ),
            )

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

    def _add_events(self, span: Span, ctx: ClientRequestContext) -> None:
        last = self._last_before
        requests = [each for each in ctx.log.children if (each.attempt or 0) > last]
        number = ctx.call.attempts_made - self._attempts_before
        # Where nothing retries, nobody gives the attempt a log of its own.
        number = number if requests or self._is_retried else 1
        span.set_attribute("aioretry_smithy.attempts", number)
        # A wait ends where the next attempt begins; a body may come before the wait.
        now = self._loop.time()
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

    def _measure(
        self, instruments: TrafficInstruments, seconds: float, attributes: Attributes
    ) -> None:
        instruments.call_duration.record(seconds, attributes, self._context)


def trace_body(tracer: Tracer, context: Context, call: Call, record: Record) -> None:
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
    tracer: Tracer, context: Context, call: Call, record: Record
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
        self._telemetry = telemetry

    def is_heard(self) -> bool:
        """Say whether spans are recorded: an SDK is set up, and not switched off."""
        telemetry = self._telemetry
        if telemetry.tracer.get() is None and telemetry.instruments.get() is None:
            return False
        return not is_suppressed()

    def begin(self, ctx: ClientRequestContext, request: object) -> CallObservation:
        """Begin the span of an attempt, or of a call."""
        subject = self._subject(ctx, request, self._telemetry.instruments.get())
        kind = TracedCall if self.sees_call(ctx) else self._attempt
        return kind(self._telemetry, self, ctx, request, subject)

    @abstractmethod
    def _subject(
        self,
        ctx: ClientRequestContext,
        request: Any,
        instruments: TrafficInstruments | None,
    ) -> Subject:
        """Return the words for a call."""
