"""The span and the measurements of one attempt, and the span of a body that failed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from opentelemetry.trace import SpanKind, Tracer

from .._masking.mask import HIDDEN
from .._text import encodable
from .client import log_error
from .labels import ANOTHER_METHOD, Attributes, class_name
from .spans import Telemetry, Traced, nanoseconds, show_failure

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from .._call.context import ClientRequestContext
    from .._log.request_log import RequestLog
    from .._request.request import HttpRequest
    from .instruments import TrafficInstruments

_SENDS: Final = "aioretry_smithy.opentelemetry.sends"


class TracedAttempt(Traced):
    """A CLIENT span, as the conventions for HTTP have it."""

    __slots__ = ("_number", "_sends")

    _kind = SpanKind.CLIENT
    _name = "{}"

    def __init__(
        self,
        telemetry: Telemetry,
        ctx: ClientRequestContext,
        request: HttpRequest,
        *,
        injects: bool,
    ) -> None:
        # How often the call was sent, as far as these providers heard of it.
        key = _SENDS, telemetry.target
        self._sends: Counter[str] = ctx.attributes.setdefault(key, Counter())
        self._number = self._sends["begun"]
        self._sends["begun"] += 1
        super().__init__(telemetry, ctx, request, injects=injects)

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        """End the span, and measure."""
        # By an open circuit further in, so that nothing went out.
        self._sends["refused"] += ctx.log._was_refused
        super().end(ctx, cause)
        tracer, context = self._tracer, self._context
        if tracer is None or context is None or self._span is None:
            return
        if not ctx.log.is_complete:
            trace_body(tracer, context, ctx.log)

    def _first_attributes(self, ctx: ClientRequestContext) -> Attributes:
        request = self.request
        attributes: Attributes = {"http.request.method": self._method, **self._server}
        if self._method == ANOTHER_METHOD:
            attributes["http.request.method_original"] = encodable(request.method)
        if self._server:
            url = ctx.log.mask.text(str(request.full_url()))
            attributes["url.full"] = url.replace(
                f"//{HIDDEN}@", "//REDACTED:REDACTED@"
            ).replace(f"={HIDDEN}", "=REDACTED")
        sent_before = self._number - self._sends["refused"]
        if sent_before > 0:
            attributes["http.request.resend_count"] = sent_before
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

    def _measure(
        self, instruments: TrafficInstruments, seconds: float, attributes: Attributes
    ) -> None:
        instruments.request_duration.record(seconds, attributes, self._context)
        attributes.pop("network.protocol.version", None)
        instruments.attempts.add(1, attributes, self._context)
        if self._number:
            instruments.retries.add(1, attributes, self._context)


def trace_body(tracer: Tracer, context: Context, log: RequestLog) -> None:
    """Wait for the end of a body, and make a span of it where it failed.

    That is a child of the span of the attempt, which *context* has.
    """

    def look() -> None:
        if not log.is_complete:
            trace_body(tracer, context, log)
            return
        try:
            _trace_failure(tracer, context, log)
        except Exception as error:
            log_error(error)

    call = log._call
    call.waiters = (*call.waiters, look)


def _trace_failure(tracer: Tracer, context: Context, log: RequestLog) -> None:
    cause, outcome = log.response_cause, log._outcome
    if cause is None or outcome.ended is None or outcome.body_ended is None:
        return
    kind = class_name(cause)
    span = tracer.start_span(
        "response body",
        context=context,
        attributes={"error.type": kind},
        start_time=nanoseconds(log, outcome.ended),
    )
    end = nanoseconds(log, outcome.body_ended)
    show_failure(span, kind, cause, log.mask, end)
    span.end(end)
