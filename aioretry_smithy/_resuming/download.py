"""A resumed download: requests parts until complete, or until not resumable."""

from __future__ import annotations

import asyncio
import weakref
from contextvars import Context, copy_context
from functools import partial
from types import coroutine
from typing import TYPE_CHECKING, Final, TypeVar

import aiohttp

from .._bodies.response_content import discard
from .._call.closing import pause
from .._call.outcome import Answered, Result, RetryStopReason
from .._call.recorder import note_length, record_end_of_body
from .._call.time_limits import tick_of, time_left
from .._context.recording import fail_body
from .._errors import AttemptTimeoutError, ResponseTimeoutError
from .._failures.failure import TRANSIENT, RetrySafety, failure_of
from .._failures.hints import retry_after
from .._failures.kept_cause import drop_frames
from .._policies.backoff import Backoff
from .._retry.config import RetryConfig
from .._retry.ending import is_refusal
from .._retry.wait import Stop, Wait, plan_wait
from .part import (
    DownloadConnection,
    Mismatch,
    Part,
    PartsToCome,
    Piece,
    Version,
    check_stream,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from .._call.call import Call
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest

    Send = Callable[
        [ClientRequestContext, HttpRequest], Awaitable[aiohttp.ClientResponse]
    ]


_T = TypeVar("_T")


@coroutine
def in_context(
    context: Context, work: Coroutine[object, object, _T]
) -> Generator[object, object, _T]:
    """Await *work*, in the present task, with the variables of a *context*.

    So that the request for a part is made within the span of its call, and not within
    that of the code which happens to read.
    """
    step: Callable[[], object] = partial(work.send, None)
    while True:
        try:
            waited_for = context.run(step)
        except StopIteration as end:
            result: _T = end.value
            return result
        finally:
            # The traceback of what is thrown in has this frame: no cycle.
            del step
        try:
            step = partial(work.send, (yield waited_for))
        except BaseException as cause:
            step = partial(work.throw, cause)


_USUAL: Final = RetryConfig.no_retry()
"""The settings of waits in a chain without retries."""


class Progress:
    """The parts in a row that brought nothing, and the wait before the next one."""

    wait: Wait | None
    """The wait before the next part is asked for; None where there is none."""

    def __init__(self, call: Call, most: int) -> None:
        self._call = call
        self._most = most
        self.note_bytes()

    def note_bytes(self) -> None:
        """Note that a part has received bytes."""
        self._without = self._empty = 0
        self.wait = None

    def after_nothing(
        self, asked: float = 0.0, *, is_first: bool = False
    ) -> RetryStopReason | None:
        """Count a part without bytes; return the reason to stop, if there is any.

        Args:
            asked: Seconds that the server asks to wait.
            is_first: Whether it was the first part, which is not counted.
        """
        self._without += not is_first
        self._empty += 1
        if self._without >= self._most:
            return RetryStopReason.BACKOFF_EXHAUSTED
        call, config = self._call, self._call.retry_config
        if not isinstance(config, RetryConfig):
            config = _USUAL
        if not config.use_retry_after:
            asked = 0.0
        wait = Wait(Backoff.of_default().next_delay(self._empty) or 0.0, "backoff")
        tick = tick_of(call.loop)
        planned = plan_wait(wait, asked, time_left(call), config, tick)
        if isinstance(planned, Stop):
            return planned.reason
        self.wait = planned
        return None

    def after_answer(self, response: aiohttp.ClientResponse) -> RetryStopReason | None:
        """Count an answer without a part; return the reason to stop, if any."""
        status = response.status
        if status < 500 and status not in TRANSIENT:
            return RetryStopReason.NO_RETRY
        return self.after_nothing(retry_after(response.headers) or 0.0)

    def after_failure(self, cause: Exception) -> RetryStopReason | None:
        """Count a failed request for a part; return the reason to stop, if any.

        What this side refuses for now, such as an open circuit, counts as a part.
        """
        failure = failure_of(cause)
        is_final = failure.safety is RetrySafety.NO and not is_refusal(cause)
        if is_final or reason_for(cause) is RetryStopReason.DEADLINE:
            return reason_for(cause)
        return self.after_nothing(failure.hint() or 0.0)


def reason_for(cause: Exception) -> RetryStopReason:
    """Return why a download ends with a failure after which no part is asked for."""
    is_late = isinstance(cause, ResponseTimeoutError)
    if is_late and not isinstance(cause, AttemptTimeoutError):
        return RetryStopReason.DEADLINE
    return RetryStopReason.NO_RETRY


_RESUMED: Final = (
    aiohttp.ClientPayloadError,
    aiohttp.ClientOSError,
    aiohttp.ServerDisconnectedError,
    aiohttp.SocketTimeoutError,
    ConnectionError,
)
"""Failures of a body after which the rest is asked for."""


class Download:
    """A body on its way, of which the first part has begun to arrive.

    The call has an outcome of its own from then on: how the first part answered, and
    how the last one ended.

    Args:
        send: Sends a request for a part.
        ctx: The call; or the attempt, where a decorator outside has made one.
        request: What was asked for.
        response: The answer, the only one that the caller gets.
        version: The version that it is of.
        max_without_progress: Requests in a row that may bring no byte.
    """

    is_whole: bool
    """Whether all of it has been taken."""

    def __init__(
        self,
        send: Send,
        ctx: ClientRequestContext,
        request: HttpRequest,
        response: aiohttp.ClientResponse,
        version: Version,
        max_without_progress: int,
    ) -> None:
        self._send = send
        self._ctx = ctx
        self._call = ctx.call
        self._request = request
        self._version = version
        self._progress = Progress(self._call, max_without_progress)
        # It has the stream, which has this: the caller may drop it.
        self._first = weakref.ref(response)
        self._part: Part | None = Part(response, version.start)
        self._part.at_end(response._response_eof, self._first_arrived)
        self._kept = PartsToCome(self._call)
        # Parts are spans of the call, whoever reads.
        self._context: Context | None = copy_context()
        self._task: asyncio.Task[object] | None = None
        self._is_over = self.is_whole = self._has_broken = False
        self._taken = version.start
        part = self._call.outcome
        ended = part.ended or self._call.loop.time()
        self._whole = Answered(ended, response, response.headers)
        self._whole.is_injected, self._whole.preview = part.is_injected, part.preview
        self._whole.is_unwanted, self._whole.part = part.is_unwanted, part
        self._stop_reason = self._call.stop_reason
        self._claim()
        self._connection: DownloadConnection | None = None
        if response.connection is not None:
            self._connection = DownloadConnection(response.connection, self._let_go)
            response._connection = self._connection

    async def next_piece(self) -> Piece | None:
        """Return what comes next, after a wait; None at the end.

        Raises:
            Exception: It cannot go on.
        """
        while not self.is_whole:
            part = self._part
            if part is None:
                await self._ask()
                continue
            failure = piece = None
            try:
                piece = await part.next_piece()
            except Exception as cause:
                if not self._goes_on_after(part, cause):
                    raise
                failure = cause
            if failure is not None:
                # Its frames have the part, which has it.
                drop_frames(failure)
            elif piece is None:
                self._end(part)
            else:
                return self._take(part, piece)
        return None

    def piece_at_hand(self) -> Piece | None:
        """Return the bytes that have arrived and are not taken; None for none."""
        part = self._part
        piece = None if part is None else part.piece_at_hand()
        if part is None or piece is None:
            return None
        return self._take(part, piece)

    def give_up(self) -> None:
        """Close open responses, after a failure or if the reader is gone."""
        if self._is_over:
            return
        part, task = self._part, self._task
        self._finish(self._taken if part is None else part.began_at + part.received)
        if part is not None:
            part.close(self._connection)
        self._end_connection()
        if task is not None and task is not asyncio.current_task():
            # It waits for the headers of the next part.
            task.cancel()

    def _first_arrived(self) -> None:
        """Notify the response, if still alive, that its own body was received whole."""
        first = self._first()
        if first is not None:
            first._response_eof()
        else:
            self._let_go()

    def _let_go(self) -> None:
        """Note that the response has let go of the connection.

        Either all has arrived; or the download is over; or there is no response any
        more, whose stream somebody may still read.
        """
        part = self._part
        if part is not None and part.has_arrived and not part.is_cut:
            self._finish(part.began_at + part.received)
        if self._is_over:
            self._end_connection()

    def _end_connection(self) -> None:
        if self._connection is not None:
            self._connection.end()

    def _take(self, part: Part, piece: Piece) -> Piece:
        self._taken += len(piece.data)
        if part.end is not None and self._taken > part.end:
            raise self._refuse("the part has more bytes than its range")
        if part.is_at_end:
            # As of any stream it is known at once, without another read.
            self._end(part)
        return piece

    def _end(self, part: Part) -> None:
        """End a part: either the body is complete, or the download has to continue."""
        if part.end is None or self._taken == self._version.total:
            self._complete()
            return
        self._part, self._has_broken = None, False
        if (reason := self._reason_after(part)) is not None:
            error = aiohttp.ClientPayloadError(
                f"cannot resume at byte {self._taken}: the parts are empty"
            )
            raise self._failed(error, reason)

    def _goes_on_after(self, part: Part, cause: Exception) -> bool:
        """Close a part that has failed; say whether to ask for the rest."""
        if self._is_over:
            return False
        part.close(self._connection)
        self._part, self._has_broken = None, True
        if self._taken == self._version.total:
            self._complete()
            return True
        if isinstance(cause, _RESUMED):
            reason = self._reason_after(part)
        else:
            reason = reason_for(cause)
        if reason is not None:
            self._failed(cause, reason)
        return reason is None

    def _reason_after(self, part: Part) -> RetryStopReason | None:
        """Return why nothing is asked for after a part, if so."""
        if self._taken > part.began_at:
            self._progress.note_bytes()
            return None
        return self._progress.after_nothing(is_first=part.end is None)

    async def _ask(self) -> None:
        """Ask for the rest, once; there may be no answer that brings some of it."""
        self._task = task = asyncio.current_task()
        before = task.cancelling() if task else 0
        response: Result = None
        failure = reason = None
        try:
            context = self._context or copy_context()
            response = await in_context(context, self._part_of_it())
            if not self._version.may_be_part(response):
                reason = self._progress.after_answer(response)
                if reason is None:
                    await discard(response)
                    return
        except BaseException as cause:
            if self._is_over:
                if task and task.uncancel() <= before:
                    raise _closed() from None
                raise
            if not isinstance(cause, Exception):
                raise
            reason = self._progress.after_failure(cause)
            if reason is not None:
                self._failed(cause, reason)
                raise
            failure = cause
        finally:
            self._task = None
            self._kept.end()
        if failure is None:
            self._judge(response, reason or RetryStopReason.NO_RETRY)
        else:
            drop_frames(failure)

    async def _part_of_it(self) -> aiohttp.ClientResponse:
        """Send the request for the rest, after a wait where that is due."""
        self._kept.begin()
        if (wait := self._progress.wait) is not None:
            for last in self._call.sent[-1:]:
                last.delay, last.delay_source = wait.delay, wait.source
            await pause(self._call, wait.delay)
        rest = self._request.with_header("Range", f"bytes={self._taken}-")
        rest = rest.with_header("If-Range", self._version.validator)
        try:
            response = await self._send(self._ctx, rest)
        finally:
            self._claim()
        if self._is_over:
            # A decorator has swallowed the cancellation of the reader.
            response.close()
            raise _closed()
        return response

    def _judge(self, response: aiohttp.ClientResponse, reason: RetryStopReason) -> None:
        """Take an answer for the next part, or for the end; else end for a reason."""
        try:
            end = self._version.check(
                response, self._taken, after_break=self._has_broken
            )
            check_stream(response)
        except Mismatch as mismatch:
            words = str(mismatch)
        else:
            self._begin(Part(response, self._taken, end), response)
            return
        response.close()
        raise self._refuse(words, reason)

    def _begin(self, part: Part, response: aiohttp.ClientResponse) -> None:
        call = self._call
        self._whole.part = part.outcome_in(call) or self._whole.part
        if part.end is None:
            response.release()
            self._complete()
            return
        part.use_call_deadline(call, response)
        self._part = part
        if self._connection is not None and response.connection is not None:
            self._connection.current = response.connection

    def _complete(self) -> None:
        """Complete the download, and end the response."""
        self.is_whole, self._part = True, None
        if not self._is_over:
            self._finish(self._taken)
        first = self._first()
        if first is not None:
            first._response_eof()
        self._end_connection()

    def _refuse(
        self, words: str, reason: RetryStopReason = RetryStopReason.NO_RETRY
    ) -> aiohttp.ClientPayloadError:
        """Make the error for a part of a different version, and end with the error."""
        part, self._part = self._part, None
        if part is not None:
            part.close(self._connection)
        error = aiohttp.ClientPayloadError(
            f"cannot resume at byte {self._taken}: {words}"
        )
        self._failed(error, reason)
        return error

    def _failed(self, cause: Exception, reason: RetryStopReason) -> Exception:
        """Record a failure as the outcome of the whole download; return the failure."""
        self._call.stop_reason = reason
        note_length(self._whole, self._taken - self._version.start)
        fail_body(self._call, self._whole, cause)
        self._finish(self._taken)
        if self._connection is not None:
            self._connection.close()
        return cause

    def _finish(self, end: int) -> None:
        """Note the end of the last part, after which no further part is asked for."""
        self._is_over, self._context = True, None
        self._kept.let_go()
        note_length(self._whole, end - self._version.start)
        record_end_of_body(self._call, self._whole)

    def _claim(self) -> None:
        """Let the call have the outcome of the whole, not that of a part."""
        call = self._call
        call.outcome, call.stop_reason = self._whole, self._stop_reason
        if self._ctx.attempt is not None:
            self._ctx.record.outcome = self._whole


def _closed() -> aiohttp.ClientConnectionError:
    return aiohttp.ClientConnectionError("Connection closed")
