"""The log of a call: a line, notes on its failure, and how both are found."""

from __future__ import annotations

import os
import weakref
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, overload

from .._call.recorder import attach_to_error, attached_to
from .._errors import bad_argument, raised_from
from .._failures.frames import sources_of
from .._text.printable import printable
from . import tree
from .facts import LogFacts

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from .._call.call import Call
    from .._call.record import Record
    from .rich_tree import RichTree


def find_call(source: object) -> Call | None:
    """Return the call attached to *source*, or to what it was raised from."""
    found = (call_of(link) for link in raised_from(source, largest_group=1))
    return next((call for call in found if call is not None), None)


def call_of(source: object) -> Call | None:
    """Return the call of a context, response or exception; None if unknown."""
    call: Call | None = attached_to(source)
    if call is None and isinstance(source, BaseException):
        return _call_of_body(source)
    return call


def _call_of_body(error: BaseException) -> Call | None:
    """Find the call of the response that raised *error*.

    Most of what a response raises does not pass through this library: errors of its
    status or its JSON. Their frames have the response, or its stream.
    """
    for source, has_failed in sources_of(error):
        call: Call | None = attached_to(source)
        if call is not None:
            if has_failed:
                # Before it was read, so that no wait for it has met the failure.
                source.fail(error)
            return call
    return None


_D = TypeVar("_D")
_MISSING: Final = object()


class RequestLog(LogFacts):
    """The log of a call, or of one attempt of it.

    The log of a call (the *root*) has those of its attempts as :attr:`children`. It
    shows the request side of the first and the response side of the last; its durations
    run from the start of the call. Times are seconds of the event loop. Credentials are
    hidden in all views. After Armeria's ``RequestLog``.
    """

    __slots__ = ()

    def render(self) -> str:
        """Draw the call and its attempts as a tree of lines, credentials hidden."""
        return tree.tree(self, self.children)

    def to_dict(self) -> dict[str, Any]:
        """Return the log and its attempts as JSON values, credentials hidden."""
        return tree.to_dict(self)

    def to_har(self) -> dict[str, Any]:
        """Return the log as an HTTP Archive (HAR 1.2), credentials hidden.

        Write it as JSON into a file ``call.har``, and open that in the developer tools
        of a browser. The call is a page, and each attempt an entry, with status 0 where
        there was no answer. What HAR lacks is in fields of its entries and pages with
        the names of :meth:`to_dict` behind an underscore, such as ``_attempt``,
        ``_delay`` and ``_stop_reason``, in seconds; ``_error`` is the
        ``response_cause``. Of a function, each HTTP call inside is a page.

        >>> import json
        >>> def save(log):
        ...     Path("call.har").write_text(json.dumps(log.to_har()))
        """
        # Most programs write no archive.
        from .exports import to_har  # noqa: PLC0415
        from .saved_log import SavedLog  # noqa: PLC0415

        return to_har(SavedLog(self.to_dict()))

    def to_curl(self) -> str:
        """Return the command that sends the request again with ``curl``.

        Of a call it is the first request that was sent, of the log of an attempt that
        one. It is for a POSIX shell. Credentials are ``****``: put yours in their
        place. The body is not in it; if there was one, a comment says so in the last
        line.

        Raises:
            ValueError: This is the log of a function.

        >>> def explain(log):
        ...     print(log.children[-1].to_curl())
        """
        if self.request_method is None:
            raise bad_argument("log", self, "the log of an HTTP call")
        from .exports import to_curl  # noqa: PLC0415
        from .saved_log import SavedLog  # noqa: PLC0415

        return to_curl(SavedLog(self.to_dict()))

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

    def __repr__(self) -> str:
        return f"<RequestLog {tree.headline(self, self.children)}>"

    @overload
    @staticmethod
    def of(source: object) -> RequestLog: ...
    @overload
    @staticmethod
    def of(source: object, default: _D) -> RequestLog | _D: ...
    @staticmethod
    def of(source: object, default: object = _MISSING) -> object:
        """Find the log of the call that *source* came from.

        Args:
            source: A response of a decorated session, or an exception raised through
                one or through a function of :func:`rpc`. Where a library wrapped the
                exception, ``__cause__`` and then ``__context__`` are followed, and in a
                group of one its member.
            default: What to return where there is no log.

        Returns:
            The root log.

        Raises:
            LookupError: There is no log and no *default*.

        >>> RequestLog.of(ValueError("not of a call"), None) is None
        True
        """
        call = find_call(source)
        if call is not None:
            return log_of(call, call)
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
            call.wait_with(partial(_wake, future))
            await future
        return self

    def _has_ended(self) -> bool:
        # Between two attempts a call may look as if it had ended.
        is_over = self._call.is_over
        if self.attempt is None and not is_over:
            return False
        return self.is_complete or (is_over and self._record.outcome.ended is None)


def _wake(future: asyncio.Future[None]) -> None:
    # The task that waited may be cancelled.
    if not future.done():
        future.set_result(None)


def log_of(call: Call, record: Record) -> RequestLog:
    """Return the log of a call or of one of its requests: the same while alive."""
    return RequestLog._of(call, record)


class _Logs(list["RequestLog"]):
    """A list that can be referred to weakly."""

    __slots__ = ("__weakref__",)


class CaptureBlock:
    """A ``capture_logs()`` block: collects logs while its list is alive.

    A connection that is opened in the block, or a task, has the context of the block
    for as long as it lives, which may be long.
    """

    __slots__ = ("is_open", "reference")

    def __init__(self, logs: _Logs) -> None:
        self.reference = weakref.ref(logs)
        self.is_open = True

    def append(self, log: RequestLog) -> None:
        """Take the log of a call that starts."""
        logs = self.reference()
        if logs is not None and self.is_open:
            logs.append(log)


_captures: ContextVar[tuple[CaptureBlock, ...]] = ContextVar(
    "aioretry_smithy_captures", default=()
)


@contextmanager
def capture_logs() -> Iterator[list[RequestLog]]:
    """Collect the root logs of the calls made in a block.

    A log is appended when its call starts. Calls in tasks that are started in the block
    count too; nested blocks each collect. Use it with code that never shows you the
    response.

    >>> with capture_logs() as logs:
    ...     pass  # for example: await client_of_some_library.list_buckets()
    >>> logs
    []
    """
    logs = _Logs()
    block = CaptureBlock(logs)
    token = _captures.set((*_captures.get(), block))
    try:
        yield logs
    finally:
        # Blocks in generators need not end in the order in which they began.
        others = tuple(other for other in _captures.get() if other is not block)
        try:
            _captures.reset(token)
        except ValueError:
            # Nor where they began, and that context cannot be reached from here.
            block.is_open = False
        _captures.set(others)


collecting: Callable[[], tuple[CaptureBlock, ...]] = _captures.get
"""Returns the blocks around that collect logs; asked by each call."""


_LONGEST: Final = 240
"""The longest text of a failure in the line, in characters."""


def one_line(log: LogFacts) -> str:
    """Name a request, its outcome, attempts and time, and why it stopped, in a line."""
    outcome = tree.describe_outcome(log, _LONGEST)
    parts = [f"{printable(log._described())} -> {outcome}{_effort(log)}"]
    if log.endpoint is not None:
        parts.append(f" at {printable(log.endpoint)}")
    reason, words = tree.stop_in_words(log, _LONGEST)
    if reason is not None:
        parts.append(f" ({reason}: {words})" if words else f" ({reason})")
    change = "" if log.attempt else tree.describe_change(log)
    if change:
        parts.append(f", changed to {change}")
    if log.no_retries:
        parts.append(f", {tree.RETRIES_OFF}")
    return "".join([*parts, f", id={log.id}"])


def _effort(log: LogFacts) -> str:
    """Describe the number of attempts (of an attempt, its number) and the duration."""
    seconds = tree.seconds_taken(log)
    took = "" if seconds is None else f" in {_shown(seconds)}"
    if log.attempt is not None:
        kind = "hedge, attempt" if log.is_hedge else "attempt"
        return f", {kind} {log.attempt}{took}"
    if log.children:
        return f", {tree.counted(log.total_attempts or 0, 'attempt')}{took}"
    return took


def _shown(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds < 1 else f"{seconds:.2f} s"


_NOTES: Final = "_aioretry_smithy_notes"


def annotate(call: Call, cause: BaseException, *, keep: bool = False) -> None:
    """Attach a call and notes to *cause*, which the caller gets.

    Where it comes out of a call made inside, *keep* the notes of that.
    """
    attach_to_error(call, cause)
    # An exception of the user's own may refuse to be written on.
    with suppress(Exception):
        add_notes(log_of(call, call), cause, keep=keep)


def add_notes(log: LogFacts, error: BaseException, *, keep: bool = False) -> None:
    """Add a note for each attempt to the exception, if the call made several attempts.

    An exception that had ended another call before loses the notes of that one: some
    are raised again and again, in aiohttp as well as in tests. *keep* those of a call
    made inside this one.
    """
    attempts = log.children if len(log.children) > 1 else ()
    notes = [f"{note(attempt)}, id={attempt.id}" for attempt in attempts]
    if notes and log.limiter is not None:
        notes[-1] += f", stopped: {tree.describe_stop(log)}"
    attributes = vars(error)
    stale = () if keep else attributes.pop(_NOTES, ())
    if stale:
        kept = getattr(error, "__notes__", ())
        error.__notes__ = [line for line in kept if line not in stale]
    if notes:
        attributes[_NOTES] = [*attributes.get(_NOTES, ()), *notes]
        for line in notes:
            error.add_note(line)


def note(attempt: LogFacts) -> str:
    """Describe the outcome of an attempt in a line."""
    name = f"attempt {attempt.attempt}"
    if attempt.endpoint is not None:
        name = f"{name} at {attempt.endpoint}"
    change = tree.describe_change(attempt)
    if change and attempt.request_method is not None:
        name = f"{name} ({change})"
    if attempt.request_method is None:
        # It may stand below the attempts of a call inside.
        name = printable(attempt.mask.text(f"{name} of {attempt.name}"))
    views = tree.describe_outcome, tree.describe_seconds, tree.describe_waits
    return f"{name}: {', '.join(filter(None, (view(attempt) for view in views)))}"
