"""The span and the measurements of one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.trace import Span, SpanKind

from .spans import Telemetry, Traced, nanoseconds

if TYPE_CHECKING:
    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .instruments import TrafficInstruments
    from .labels import Attributes


class TracedCall(Traced):
    """An INTERNAL span around all attempts of a call, and the waits between them.

    The call is retried if a retrying client further in makes the attempts.
    """

    __slots__ = ("_attempts_before", "_is_retried")

    _kind = SpanKind.INTERNAL
    _name = "call {}"

    def __init__(
        self,
        telemetry: Telemetry,
        ctx: ClientRequestContext,
        request: HttpRequest,
        *,
        injects: bool,
        is_retried: bool,
    ) -> None:
        self._is_retried = is_retried
        self._attempts_before = len(ctx.log.children)
        super().__init__(telemetry, ctx, request, injects=injects)

    def _last_attributes(
        self, ctx: ClientRequestContext, cause: BaseException | None
    ) -> Attributes:
        stop_reason = ctx.log.root.stop_reason
        if stop_reason is None:
            return {}
        return {"aioretry_smithy.stop_reason": str(stop_reason)}

    def _add_events(self, span: Span, ctx: ClientRequestContext) -> None:
        attempts = ctx.log.children[self._attempts_before :]
        # Where nothing retries, nobody gives the attempt a log of its own.
        number = len(attempts) if attempts or self._is_retried else 1
        span.set_attribute("aioretry_smithy.attempts", number)
        # A wait ends where the next attempt begins; a body may come before the wait.
        ends = [*(log.started for log in attempts), self._loop.time()]
        for log, end in zip((ctx.log, *attempts), ends, strict=True):
            if log.delay is None or log.delay_source is None:
                continue
            span.add_event(
                "aioretry_smithy.wait",
                {
                    "aioretry_smithy.attempt": log.attempt or 0,
                    "aioretry_smithy.delay": log.delay,
                    "aioretry_smithy.delay_source": log.delay_source,
                },
                nanoseconds(log, end - log.delay),
            )

    def _measure(
        self, instruments: TrafficInstruments, seconds: float, attributes: Attributes
    ) -> None:
        instruments.call_duration.record(seconds, attributes, self._context)
