"""The client that makes spans and metrics of calls and attempts of any kind."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from .._context.client import ClientT
from .client import Observation, TelemetryClient
from .spans import Telemetry, is_suppressed
from .traced import TracedAttempt, TracedCall

if TYPE_CHECKING:
    from .._context.context import ClientRequestContext
    from .instruments import TrafficInstruments
    from .labels import Subject


class TracedClient(TelemetryClient[ClientT]):
    """Makes spans and metrics of calls and attempts.

    Args:
        delegate: The next client inwards.
        telemetry: The arguments of ``new_decorator()``, checked.
    """

    _attempt: ClassVar[type[TracedAttempt]]

    def __init__(self, delegate: ClientT, telemetry: Telemetry) -> None:
        super().__init__(delegate, telemetry.target)
        self._telemetry = telemetry

    def is_heard(self) -> bool:
        """Say whether there is an SDK, and it is not switched off here."""
        telemetry = self._telemetry
        if telemetry.tracer.get() is None and telemetry.instruments.get() is None:
            return False
        return not is_suppressed()

    def begin(self, ctx: ClientRequestContext, request: Any) -> Observation:
        """Begin the span of an attempt, or of a call."""
        telemetry = self._telemetry
        instruments = telemetry.instruments.get()
        subject = self._subject(ctx, request, instruments)
        # A server gets a span in headers; a function runs in it.
        injects = self.is_innermost and self._serves == "sessions"
        if not self.sees_call(ctx):
            return self._attempt(telemetry, ctx, request, subject, injects=injects)
        return TracedCall(
            telemetry,
            ctx,
            request,
            subject,
            injects=injects,
            is_retried=self.surrounds_retries,
            is_hedged=self.surrounds_hedges,
        )

    @abstractmethod
    def _subject(
        self,
        ctx: ClientRequestContext,
        request: Any,
        instruments: TrafficInstruments | None,
    ) -> Subject:
        """Return the words for a call."""
