"""The client that counts and times calls and attempts of any kind."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias

from .._context.client import ClientT
from .._context.context import record_of
from .client import Observation, TelemetryClient
from .hedges import HedgeCount
from .labels import error_type, status_class

if TYPE_CHECKING:
    from .._context.context import ClientRequestContext
    from .prometheus_metrics import TrafficMetrics

Labels: TypeAlias = tuple[str, ...]


class MeteredClient(TelemetryClient[ClientT]):
    """Counts and times calls and attempts.

    Args:
        delegate: The next client inwards.
        metrics: The metrics of one registry.
    """

    def __init__(self, delegate: ClientT, metrics: TrafficMetrics) -> None:
        super().__init__(delegate, metrics)
        self._metrics = metrics

    def begin(self, ctx: ClientRequestContext, request: Any) -> Observation:
        """Begin to measure a call, or an attempt."""
        subject = self._subject(ctx, request)
        if self.sees_call(ctx):
            hedges = HedgeCount(record_of(ctx)[0]) if self.surrounds_hedges else None
            return _Call(self._metrics, request, subject, hedges)
        return _Attempt(self._metrics, request, subject, ctx)

    @abstractmethod
    def _subject(self, ctx: ClientRequestContext, request: Any) -> Labels:
        """Return the labels that tell a call from others."""


class _Timed(Observation):
    """The common part of a call and an attempt: a start, and labels for the call."""

    __slots__ = ("_labels", "_loop", "_metrics", "_started")

    def __init__(self, metrics: TrafficMetrics, request: Any, subject: Labels) -> None:
        self.request = request
        self._metrics = metrics
        self._labels = subject
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()

    def _elapsed(self) -> float:
        return self._loop.time() - self._started


class _Call(_Timed):
    __slots__ = ("_hedges",)

    def __init__(
        self,
        metrics: TrafficMetrics,
        request: Any,
        subject: Labels,
        hedges: HedgeCount | None,
    ) -> None:
        super().__init__(metrics, request, subject)
        self._hedges = hedges

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        if self._hedges is not None:
            counts = self._hedges.since(record_of(ctx)[0])
            for kind, number in counts.items():
                self._metrics.hedges[kind].labels(*self._labels).inc(number)
        labels = (*self._labels, _stop_reason(ctx, cause))
        self._metrics.call_duration.labels(*labels).observe(self._elapsed())


class _Attempt(_Timed):
    __slots__ = ("_is_retry",)

    def __init__(
        self,
        metrics: TrafficMetrics,
        request: Any,
        subject: Labels,
        ctx: ClientRequestContext,
    ) -> None:
        super().__init__(metrics, request, subject)
        # Not the attempt's number: a decorator may send twice in one attempt.
        is_hedge = ctx.attempt is not None and ctx.log.is_hedge
        self._is_retry = metrics in ctx.attributes and not is_hedge
        ctx.attributes[metrics] = True

    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        metrics = self._metrics
        labels = (*self._labels, status_class(ctx, cause))
        metrics.attempts.labels(*labels).inc()
        # By 0 too: the series must exist to be divided by that of the attempts.
        metrics.retries.labels(*labels).inc(self._is_retry)
        metrics.attempt_duration.labels(*labels).observe(self._elapsed())


def _stop_reason(ctx: ClientRequestContext, cause: BaseException | None) -> str:
    if cause is not None and not isinstance(cause, Exception):
        return "cancelled"
    reason = ctx.log.root.stop_reason
    if reason is not None:
        return reason.value
    # Without a stop reason, another decorator raised, or retried until a failure.
    return "error" if error_type(ctx, cause) else "none"
