"""The span of a body that failed after the span of its attempt had ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .observing import report
from .outcome import class_name
from .spans import nanoseconds, show_failure

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer

    from .._log.request_log import RequestLog


class TracedBody:
    """Waits for the end of a body, and tells of it where it failed.

    Args:
        tracer: Makes the span.
        context: Has the span of the attempt, whose child this one is.
        log: That of the attempt, which has its headers.
    """

    __slots__ = ("_context", "_log", "_tracer")

    def __init__(self, tracer: Tracer, context: Context, log: RequestLog) -> None:
        self._tracer = tracer
        self._context = context
        self._log = log

    def wait(self) -> None:
        """Look at the body when something of the call has ended."""
        call = self._log._call
        call.waiters = (*call.waiters, self._look)

    def _look(self) -> None:
        if not self._log.is_complete:
            self.wait()
            return
        try:
            self._tell()
        except Exception as error:
            report(error)

    def _tell(self) -> None:
        log = self._log
        cause, outcome = log.response_cause, log._outcome
        if cause is None or outcome.ended is None or outcome.body_ended is None:
            return
        end = nanoseconds(log, outcome.body_ended)
        kind = class_name(cause)
        span = self._tracer.start_span(
            "response body",
            context=self._context,
            attributes={"error.type": kind},
            start_time=nanoseconds(log, outcome.ended),
        )
        show_failure(span, kind, cause, log.mask, end)
        span.end(end)
