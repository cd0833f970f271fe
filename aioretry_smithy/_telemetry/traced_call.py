"""The span and the measurements of one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.trace import SpanKind

from .attributes import error_attributes, span_name
from .outcome import known_method
from .spans import Traced, nanoseconds

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from .._context import ClientRequestContext
    from .._request import HttpRequest
    from .attributes import Attributes
    from .instruments import TrafficInstruments
    from .spans import Telemetry


class TracedCall(Traced):
    """An INTERNAL span around all attempts of a call, and the waits between them."""

    __slots__ = ("_attempts_before",)

    _kind = SpanKind.INTERNAL
    _suppresses = False

    def __init__(
        self,
        telemetry: Telemetry,
        ctx: ClientRequestContext,
        request: HttpRequest,
        *,
        injects: bool,
    ) -> None:
        self._attempts_before = len(ctx.log.children)
        super().__init__(telemetry, ctx, request, injects=injects)

    def _name(self) -> str:
        return f"call {span_name(self.request)}"

    def _first_attributes(self, ctx: ClientRequestContext) -> Attributes:
        return self._server

    def _last_attributes(
        self, ctx: ClientRequestContext, cause: BaseException | None
    ) -> Attributes:
        attributes: Attributes = {}
        stop_reason = ctx.log.root.stop_reason
        if stop_reason is not None:
            attributes["aioretry_smithy.stop_reason"] = str(stop_reason)
        return attributes | error_attributes(ctx, cause)

    def _add_events(self, span: Span, ctx: ClientRequestContext) -> None:
        attempts = ctx.log.children[self._attempts_before :]
        span.set_attribute("aioretry_smithy.attempts", len(attempts) or 1)
        for log in (ctx.log, *attempts):
            if log.delay is None or log.delay_source is None:
                continue
            begin = log.started
            if log.attempt is not None:
                begin += log.duration or 0.0
            span.add_event(
                "aioretry_smithy.wait",
                {
                    "aioretry_smithy.attempt": log.attempt or 0,
                    "aioretry_smithy.delay": log.delay,
                    "aioretry_smithy.delay_source": log.delay_source,
                },
                nanoseconds(log, begin),
            )

    def _measure(
        self, instruments: TrafficInstruments, seconds: float, last: Attributes
    ) -> None:
        method = {"http.request.method": known_method(self.request)}
        attributes = {**method, **self._server, **last}
        instruments.call_duration.record(seconds, attributes, self._context)
