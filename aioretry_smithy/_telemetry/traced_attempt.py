"""The span and the measurements of one attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opentelemetry.trace import SpanKind

from .._masking.mask import HIDDEN
from .._text import encodable
from .attributes import error_attributes, span_name
from .outcome import ANOTHER_METHOD, known_method
from .spans import Traced
from .traced_body import TracedBody

if TYPE_CHECKING:
    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .attributes import Attributes
    from .instruments import TrafficInstruments
    from .spans import Telemetry

_SENDS: Final = "aioretry_smithy.opentelemetry.sends"


class TracedAttempt(Traced):
    """A CLIENT span, as the conventions for HTTP have it."""

    __slots__ = ("_number", "_sends")

    _kind = SpanKind.CLIENT
    _suppresses = True

    def __init__(
        self,
        telemetry: Telemetry,
        ctx: ClientRequestContext,
        request: HttpRequest,
        *,
        injects: bool,
    ) -> None:
        key = _SENDS, telemetry.listener
        self._sends: _Sends = ctx.attributes.setdefault(key, _Sends())
        self._number = self._sends.begin()
        super().__init__(telemetry, ctx, request, injects=injects)

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        """End the span, and measure."""
        if ctx.log._was_refused:
            self._sends.refused += 1
        super().end(ctx, cause)
        tracer, context = self._tracer, self._context
        if tracer is None or context is None or self._span is None:
            return
        if not ctx.log.is_complete:
            TracedBody(tracer, context, ctx.log).wait()

    def _name(self) -> str:
        return span_name(self.request)

    def _first_attributes(self, ctx: ClientRequestContext) -> Attributes:
        request = self.request
        method = known_method(request)
        attributes: Attributes = {"http.request.method": method, **self._server}
        if method == ANOTHER_METHOD:
            attributes["http.request.method_original"] = encodable(request.method)
        if self._server:
            url = ctx.log.mask.text(str(request.full_url()))
            attributes["url.full"] = url.replace(
                f"//{HIDDEN}@", "//REDACTED:REDACTED@"
            ).replace(f"={HIDDEN}", "=REDACTED")
        sent_before = self._number - self._sends.refused
        if sent_before > 0:
            attributes["http.request.resend_count"] = sent_before
        return attributes

    def _last_attributes(
        self, ctx: ClientRequestContext, cause: BaseException | None
    ) -> Attributes:
        attributes: Attributes = {}
        if cause is None:
            attributes["http.response.status_code"] = self.response.status
            version = self.response.version
            if version is not None:
                attributes["network.protocol.version"] = (
                    f"{version.major}.{version.minor}"
                )
        return attributes | error_attributes(ctx, cause)

    def _measure(
        self, instruments: TrafficInstruments, seconds: float, last: Attributes
    ) -> None:
        attributes = {
            "http.request.method": known_method(self.request),
            **self._server,
            **last,
        }
        instruments.request_duration.record(seconds, attributes, self._context)
        attributes.pop("network.protocol.version", None)
        instruments.attempts.add(1, attributes, self._context)
        if self._number:
            instruments.retries.add(1, attributes, self._context)


class _Sends:
    """Counts how often a call was sent, as far as one listener heard of it."""

    __slots__ = ("begun", "refused")

    def __init__(self) -> None:
        self.begun = 0
        # By an open circuit further in, so that nothing went out.
        self.refused = 0

    def begin(self) -> int:
        """Count one, and return how many there were before."""
        self.begun += 1
        return self.begun - 1
