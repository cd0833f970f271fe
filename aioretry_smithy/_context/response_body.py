"""Watch the body of a response: where reading ends or fails, and by which limit."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import StreamReader
from aiohttp.helpers import BaseTimerContext, TimeoutHandle

from .._call.outcome import connection_of
from .._call.recorder import (
    attach,
    note_length,
    record_end_of_body,
    record_failed_body,
    with_outcome,
)
from .._call.time_limits import IN_BODY, TimeLimits
from .._log.notes import annotate

if TYPE_CHECKING:
    from types import TracebackType

    from .._call.call import Call
    from .._call.outcome import Outcome
    from .context import ClientRequestContext


_FOR_STREAMS = " (attempt_timeout=None for a stream)"


def fail_body(call: Call, outcome: Outcome, cause: BaseException) -> None:
    """Record that reading a body failed; after the call, say so on the failure too."""
    is_last = record_failed_body(call, outcome, cause) and call.is_over
    # A part of a body may be followed by another: the caller gets no error then.
    if is_last and (outcome is call.outcome or call.outcome.part is None):
        annotate(call, cause)


def watch_body(ctx: ClientRequestContext, response: aiohttp.ClientResponse) -> None:
    """Record the failure of a body in its log, and name the limit that it ran into."""
    content = response.content
    # Neither the one reader of all empty bodies, nor a user's class.
    if type(content) is StreamReader:
        call = ctx.call
        content._timer = timer = _BodyTimer(
            content._timer, call, ctx.record.outcome, TimeLimits.of(ctx)
        )
        attach(call, timer)


def unwatch_body(content: StreamReader) -> None:
    """Let a body that has ended refer to its call no longer.

    aiohttp keeps the last body of a connection in the pool.
    """
    if isinstance(content._timer, _BodyTimer):
        content._timer = content._timer._timer


def use_call_deadline_for_body(
    call: Call, response: aiohttp.ClientResponse, content: StreamReader
) -> None:
    """Let the call's deadline, not the attempt's, limit the reading of a body.

    Args:
        call: The call.
        response: The response, whose connection is open.
        content: Its body, as it is watched.
    """
    timer, connection = content._timer, connection_of(response)
    if not isinstance(timer, _BodyTimer) or connection is None:
        return
    if timer.is_of_attempt():
        left = call.time_of(call)
        # To aiohttp 0 would mean that there is no limit.
        limit = TimeoutHandle(
            call.loop, None if left == math.inf else max(left, 1e-6), math.inf
        )
        timer.replace(limit.timer())
        handle = limit.start()
        if handle is not None:
            connection.add_callback(handle.cancel)


class _BodyTimer(BaseTimerContext):
    """aiohttp's timer of a response, which is entered for each wait for the body.

    It has no reference to the stream: the stream refers to it.
    """

    def __init__(
        self,
        timer: BaseTimerContext,
        call: Call,
        outcome: Outcome,
        limits: TimeLimits,
    ) -> None:
        self._timer = timer
        self._limits = limits
        self._call = call
        self._outcome = outcome

    def is_of_attempt(self) -> bool:
        """Say whether the attempt has less time than the call."""
        limits = self._limits
        return limits.attempt_deadline != limits.call_deadline

    def replace(self, timer: BaseTimerContext) -> None:
        """Watch another timer of aiohttp, which has the time of the call."""
        self._timer = timer
        self._limits = self._limits._replace(attempt_deadline=None)

    def fail(self, cause: BaseException) -> None:
        """Record that reading the body failed."""
        fail_body(self._call, self._outcome, cause)

    def assert_timeout(self) -> None:
        try:
            self._timer.assert_timeout()
        except TimeoutError as timeout:
            raise self._error() from timeout

    def __enter__(self) -> BaseTimerContext:
        try:
            self._timer.__enter__()
        except TimeoutError as timeout:
            raise self._error() from timeout
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        try:
            silenced = self._timer.__exit__(exc_type, exc_val, exc_tb)
        except TimeoutError as timeout:
            raise self._error() from timeout
        if isinstance(exc_val, Exception):
            self._note_length()
            self.fail(exc_val)
        return silenced

    def _error(self) -> TimeoutError:
        # A decorator may have set a shorter timeout than our limits.
        error = (self._limits.passed(IN_BODY, _FOR_STREAMS) or TimeoutError)()
        self._note_length(2)
        self.fail(error)
        try:
            return error
        finally:
            del error  # its traceback has this frame: no cycle

    def _note_length(self, depth: int = 1) -> None:
        """Note the number of bytes that had come to the stream."""
        stream = sys._getframe(1 + depth).f_locals.get("self")
        if isinstance(stream, StreamReader):
            note_length(self._outcome, stream.total_bytes)


def record_end(
    call: Call,
    outcome: Outcome,
    content: StreamReader,
    connection: aiohttp.connector.Connection,
) -> None:
    """Record the end of a body, once it has come over its connection."""

    def end_body() -> None:
        # A decorator may send twice, and end the first response after the second.
        if with_outcome(call, outcome) is not None:
            note_length(outcome, content.total_bytes)
            cause = _body_failure(content)
            if cause is None:
                record_end_of_body(call, outcome)
            else:
                fail_body(call, outcome, cause)
        unwatch_body(content)

    connection.add_callback(end_body)


def record_cut(call: Call, outcome: Outcome, length: int, cause: BaseException) -> None:
    """Record that a body was cut on purpose, even if all of it had arrived."""
    outcome.is_injected = True
    outcome.body_ended, outcome.length = None, length
    fail_body(call, outcome, cause)


def _body_failure(content: StreamReader) -> BaseException | None:
    if content.is_eof():
        return None
    try:
        content._timer.assert_timeout()
    except TimeoutError as timeout:
        return timeout.with_traceback(None)
    cause = content.exception()
    # A release or a close before the end leaves this very class behind.
    return None if type(cause) is aiohttp.ClientConnectionError else cause
