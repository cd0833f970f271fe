"""Record what a client returned, and where the reading of its body ends or fails."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import StreamReader
from aiohttp.helpers import BaseTimerContext, TimeoutHandle

from .._call.call import Call, Exchange
from .._call.outcome import PENDING, Answered, arrived_of, connection_of, content_of
from .._call.recorder import (
    attach,
    note_length,
    record_end_of_body,
    record_failed_body,
    record_return,
    with_outcome,
)
from .._call.time_limits import IN_BODY, TimeLimits
from .._errors import is_ours
from .._failures.hints import NO_HEADERS
from .._log.request_log import annotate
from .context import AttemptContext, ClientRequestContext

if TYPE_CHECKING:
    from types import TracebackType

    from .._call.call import Call
    from .._call.outcome import Outcome, Result
    from .._call.record import Record
    from .context import ClientRequestContext


_SWITCHING_PROTOCOLS = 101

# What users return by mistake: a body that was read, or what was not awaited.
_NO_RESPONSES = (Awaitable, bytes, dict, float, int, list, str, tuple)


def record_result(
    ctx: ClientRequestContext, result: Result, source: object = None
) -> None:
    """Record a result: a response, and the end of its body when it comes.

    Of what a function returned, only that it did. The stream is not wrapped: aiohttp
    releases the connection at the end of the body, also after a failure or an early
    exit, and then calls its callbacks.

    Args:
        ctx: The context of the call or of the attempt.
        result: What was returned.
        source: The decorator that returned it, if it was one.

    Raises:
        TypeError: It is None, an ``await`` was forgotten, or it is what was read of a
            response.
    """
    call = ctx.call
    if call.brings_response:
        if isinstance(ctx, AttemptContext):
            _choose_record(call, ctx, result)
        record_response(call, ctx.record, result, source)
        return
    if type(result) is CoroutineType and _is_of_client(result):
        raise _wrong(result, source)
    record_return(call, ctx.record)


def _choose_record(call: Call, attempt: AttemptContext, response: Result) -> None:
    """Let an attempt have the raced request that a response is of.

    A decorator may have sent several passes through a hedging client, and return
    another answer than the last. What it derived contexts for is theirs.
    """
    headers = getattr(response, "headers", None)
    own = attempt.record
    if headers is None or own.outcome.headers is headers:
        return
    if own.outcome is PENDING and not own.is_in_race:
        # It has sent nothing that could be chosen.
        return
    for sent in reversed(call.sent):
        if sent.outcome.headers is headers and sent.is_in_race and not sent.is_final:
            attempt.record = sent
            return


def record_response(
    call: Call, record: Record, response: Result, source: object = None
) -> bool:
    """Record a response; say whether its body is still to come over a connection.

    See :func:`record_result`. What is recorded already is not recorded again.
    """
    try:
        headers = response.headers
    except AttributeError:
        if response is None or isinstance(response, _NO_RESPONSES):
            raise _wrong(response, source) from None
        if not hasattr(response, "status"):
            if source is None:
                # A fake of a session's answers: Python says what it lacks.
                raise
            raise _wrong(response, source) from None
        headers = NO_HEADERS
    # Each client of a user's comes here too, so this is fast.
    outcome = record.outcome
    if record.is_final or (
        outcome is not PENDING
        and outcome.headers is headers
        and (headers is not NO_HEADERS or outcome.status == response.status)
    ):
        return False
    try:
        connection, content = response.connection, response.content
    except AttributeError:
        connection, content = connection_of(response), content_of(response)
    if connection is None or response.status == _SWITCHING_PROTOCOLS:
        is_usual = type(content) is StreamReader
        arrived = content.total_bytes if is_usual else arrived_of(response)
        record.outcome = Answered(call.loop.time(), response, headers, arrived)
        if call.waiters:
            call.wake()
        return connection is not None
    record.outcome = outcome = Answered(call.loop.time(), response, headers)
    record_end(call, outcome, content, connection)
    return True


def _is_of_client(coroutine: Any) -> bool:
    """Say whether a client was called and not awaited."""
    frame = coroutine.cr_frame
    if frame is None or frame.f_code.co_name != "execute":
        return False
    # A decorator has one of our clients, or an OutcomeRecorder around a user's.
    return is_ours(frame.f_globals["__name__"])


def _wrong(response: Result, source: object) -> TypeError:
    """Make the error for a result that is no response."""
    name = _name_of(source)
    if response is None:
        by = "" if source is None else f"; {name} returned nothing"
        return TypeError(f"response: None (expected: what the delegate returned{by})")
    if isinstance(response, Coroutine):
        response.close()
    elif isinstance(response, asyncio.Future):
        response.cancel()
    is_coroutine = type(response) is CoroutineType
    returned = "coroutine" if is_coroutine else type(response).__name__
    expected = "a response: return await delegate.execute(ctx, request)"
    return TypeError(f"{name} returned a {returned} (expected: {expected})")


def _name_of(source: object) -> str:
    if source is None:
        return "the transport"
    return getattr(source, "__name__", type(source).__name__)


def check_awaitable(code: object, source: object) -> None:
    """Refuse what a decorator returned in place of what is to be awaited.

    Args:
        code: What it returned.
        source: The decorator.

    Raises:
        TypeError: It cannot be awaited.
    """
    if inspect.isawaitable(code):
        return
    returned = "nothing" if code is None else f"a {type(code).__name__}"
    expected = "an awaitable: write async def, without yield"
    raise TypeError(f"{_name_of(source)} returned {returned} (expected: {expected})")


def close_result(ctx: ClientRequestContext, result: Result) -> None:
    """Close a response that was lost to a later failure."""
    if ctx.call.brings_response:
        # It may be no response at all.
        with suppress(Exception):
            result.close()


def count_earlier(ctx: ClientRequestContext, earlier: Record, outcome: Outcome) -> None:
    """Make an earlier request of an attempt its outcome again."""
    earlier.outcome = outcome
    if isinstance(ctx, AttemptContext) and isinstance(earlier, Exchange):
        # Each request of an attempt has a record of its own.
        ctx.record = earlier


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
