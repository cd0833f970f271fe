"""The log of a call and, nested in it, of each of its attempts."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, overload

from .._errors import bad_argument
from .._failures.kept_cause import KeptCause
from .attachment import attach, find_log
from .hedge import HedgeFacts
from .json_values import to_dict
from .notes import add_notes
from .outcome import Outcome
from .record import LogRecord
from .tree import headline, render

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    import aiohttp
    from multidict import CIMultiDict

    from .._request.request import HttpRequest
    from .rich_tree import RichTree

_D = TypeVar("_D")
_MISSING: Final = object()


class RequestLog(LogRecord):
    """The log of a call, or of one attempt of it.

    The log of a call (the *root*) has those of its attempts as :attr:`children`. It
    shows the request side of the first and the response side of the last; its durations
    run from the start of the call. Times are seconds of the event loop. Credentials are
    hidden in all views. After Armeria's ``RequestLog``.
    """

    __slots__ = ()

    def render(self) -> str:
        """Draw the call and its attempts as a tree of lines, credentials hidden."""
        return render(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the log and its attempts as JSON values, credentials hidden."""
        return to_dict(self)

    def to_svg(self, path: str | os.PathLike[str]) -> None:
        """Draw when each attempt and wait began and ended, as an SVG file.

        The picture is to scale, with the deadline, and credentials hidden; the call may
        still be under way.

        Args:
            path: The file to write. What was in it before is gone.

        Raises:
            ValueError: *path* is not a path.
            OSError: The file cannot be written.
        """
        is_path = isinstance(path, str | os.PathLike)
        if not (is_path and isinstance(os.fspath(path), str)):
            raise bad_argument("path", path, "a path")
        # Most programs draw nothing.
        from .timeline_svg import draw  # noqa: PLC0415

        Path(path).write_text(draw(self), encoding="utf-8", newline="\n")

    def __rich__(self) -> RichTree:
        """Draw the tree in colours with a time bar per attempt, for ``rich.print``."""
        # Only rich asks for it, and it need not be there.
        from .rich_tree import RichTree  # noqa: PLC0415

        return RichTree(self)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        # An exception or a log record is pickled without the log that it carries.
        return type(None), ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<RequestLog {headline(self, self.children)}>"

    @overload
    @staticmethod
    def of(source: object) -> RequestLog: ...
    @overload
    @staticmethod
    def of(source: object, default: _D) -> RequestLog | _D: ...
    @staticmethod
    def of(source: object, default: Any = _MISSING) -> Any:
        """Find the log of the call that *source* came from.

        Args:
            source: A response of a decorated session, or an exception raised through
                one or through a function of :func:`rpc`. Where a library wrapped the
                exception, ``__cause__`` and then ``__context__`` are followed.
            default: What to return where there is no log.

        Returns:
            The root log.

        Raises:
            LookupError: There is no log and no *default*.

        >>> RequestLog.of(ValueError("not of a call"), None) is None
        True
        """
        log = find_log(source)
        if log is not None:
            return log
        if default is not _MISSING:
            return default
        what = f"<{type(source).__name__} object>"
        where = "a decorated session or function"
        raise LookupError(f"no log: {what} is not of a call of {where}")

    async def when_complete(self) -> Self:
        """Wait until the call failed or the body of its response ended or failed.

        There is no time limit, and a body that is never read does not end.

        Returns:
            This log.

        >>> async def report(log):
        ...     print((await log.when_complete()).render())
        """
        call = self._call
        while not self._has_ended():
            future: asyncio.Future[None] = call.loop.create_future()
            call.waiters = (*call.waiters, partial(_wake, future))
            await future
        return self

    def _has_ended(self) -> bool:
        # Between two attempts a call may look as if it had ended.
        is_over = self._call.is_over
        if self.attempt is None and not is_over:
            return False
        return self.is_complete or (is_over and self._outcome.ended is None)

    def _count_attempts(self) -> int:
        """Return how many there were, resends apart: they belong to an attempt."""
        self._make_first_attempt()
        return len(self._children) - self._call.resends

    def _begin_after_wait(self, waited: float) -> None:
        """Note that this begins now, after a wait for its turn at a rate.

        The wait belongs to the attempt before, before the first one to the call. A
        wait for a hedge, or for what is sent again within an attempt, belongs to
        nobody.
        """
        if self._sent:
            return
        before = self.root
        if self.attempt is not None:
            self._start_later(waited)
            if self.is_hedge:
                return
            if self.attempt > 1:
                before = _waited_after(before._children[: self.attempt - 1])
        before.delay = (before.delay or 0.0) + waited
        before.delay_source = "rate_limit"

    def _note_defaults(self, headers: CIMultiDict[str], request: HttpRequest) -> None:
        """Note the headers of the session where they changed before *request* is sent.

        They are those of the first request until another one is sent with others.
        """
        call = self._call
        if headers != call.default_headers:
            if self.attempt in {None, 1}:
                call.default_headers = headers.copy()
            else:
                self._sent_headers = request.merged_headers(headers)

    def _record_response(
        self, response: aiohttp.ClientResponse, length: int | None = None
    ) -> None:
        """Note that *response* arrived, with *length* bytes where that was all."""
        history = response.history
        first_hop = history[0] if history else response
        self._sent_headers = first_hop.request_info.headers
        self._outcome = Outcome(self._call.loop.time(), response, length)
        if length is not None and self._call.waiters:
            self._call.wake()

    def _record_return(self) -> None:
        """Note that a function returned; twice is once, and its value is not kept."""
        outcome = self._outcome
        if not self._is_settled and (
            outcome.ended is None or outcome.cause is not None
        ):
            self._outcome = Outcome(self._call.loop.time())
            if self._call.waiters:
                self._call.wake()

    def _record_failure(self, cause: BaseException) -> None:
        """Note that there is no response, because of *cause*; twice is once."""
        if not self._is_settled and self.response_cause is not cause:
            kept = KeptCause(cause) if self._call.is_over else cause
            self._outcome = Outcome(self._call.loop.time(), cause=kept)
            if self._call.waiters:
                self._call.wake()

    def _mark_injected(self) -> None:
        """Note that a fault was injected, and that the outcome so far came of it."""
        if self._outcome.ended is not None and not self._is_settled:
            self._outcome.is_injected = True

    def _record_refusal(self, cause: BaseException) -> None:
        """Note that the caller's ``raise_for_status`` turned the response down."""
        self._refusal = KeptCause(cause)

    def _end_race(self) -> None:
        """Note that a race is over, but the request that counts was before."""
        if not self._is_settled:
            self._race = HedgeFacts()
            self._race.ended = self._call.loop.time()

    def _record_answer(self, child: Self) -> None:
        """Note that the call ends as its attempt *child* ended."""
        self._outcome = child._outcome

    def _end_body(self, length: int, cause: BaseException | None = None) -> None:
        """Note that the body of the response ended, or failed with *cause*."""
        outcome = self._outcome
        if outcome.ended is None:
            return
        if outcome.length is None:
            outcome.length = length
        if outcome.body_ended is None:
            if cause is None:
                outcome.body_ended = self._call.loop.time()
                if self._call.waiters:
                    self._call.wake()
            else:
                self._fail_body(outcome, cause)

    def _with_outcome(self, outcome: Outcome) -> Self | None:
        """Return the log that has an outcome: this one, or that of an attempt."""
        logs = (self, *self._children)
        return next((log for log in logs if log._outcome is outcome), None)

    def _fail_body(self, outcome: Outcome, cause: BaseException) -> None:
        """Note that reading the body of a response failed."""
        if outcome.body_ended is not None or self._with_outcome(outcome) is None:
            return
        outcome.body_ended = self._call.loop.time()
        if self._call.is_over:
            outcome.cause = KeptCause(cause)
            self.root._annotate(cause)
        else:
            outcome.cause = cause
        if self._call.waiters:
            self._call.wake()

    def _annotate(self, cause: BaseException, *, is_from_inside: bool = False) -> None:
        """Attach the log and notes to *cause*, which the caller gets.

        Where it comes out of a call made inside, the notes of that stay.
        """
        attach(self, cause)
        # An exception of the user's own may refuse to be written on.
        with suppress(Exception):
            add_notes(self, cause, keep=is_from_inside)

    def _end_call(self) -> None:
        """Keep no exception of the call alive, and no frames (on the root)."""
        self._call.is_over = self._is_settled = True
        if isinstance(self._outcome.cause, BaseException):
            attach(self, self._outcome.cause)
        if self._retry_error is not None:
            self._retry_error = KeptCause.of(self._retry_error)
        logs: list[RequestLog] = [self, *self._children]
        for log in logs:
            outcome = log._outcome
            if outcome.cause is not None:
                outcome.cause = KeptCause.of(outcome.cause)
            if outcome.ended is not None:
                log._is_settled = True
        if self._call.waiters:
            self._call.wake()


def _waited_after(logs: Sequence[RequestLog]) -> RequestLog:
    """Return which of the last request and its hedges has the wait after them."""
    backwards = reversed(logs)
    return next(log for log in backwards if log.delay is not None or not log.is_hedge)


def _wake(future: asyncio.Future[None]) -> None:
    # The task that waited may be cancelled.
    if not future.done():
        future.set_result(None)
