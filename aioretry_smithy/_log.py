"""The log of a call and, nested in it, of each of its attempts."""

from __future__ import annotations

import math
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from ._capture import find_log
from ._errors import bad_argument
from ._recording import Recording
from ._render import render, to_dict
from ._text import encodable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yarl import URL

    from ._rich_tree import RichTree

_D = TypeVar("_D")
_MISSING: Final = object()


class RequestLog(Recording):
    """What is known of a call, or of one attempt of it.

    The log of a call (the *root*) has the logs of its attempts as :attr:`children`. It
    shows the request side of its first attempt and the response side of its last; its
    durations run from the start of the call. The log is a by-product: nothing waits for
    it. Times are seconds of the event loop. After Armeria's ``RequestLog``.
    """

    __slots__ = ()

    @property
    def total_attempts(self) -> int | None:
        """How many attempts were made so far (on the root; 1 where nothing retries)."""
        return None if self.attempt is not None else len(self._children or (self,))

    @property
    def name(self) -> str:
        """What the call is named in logs: its method."""
        return self.request_method

    @property
    def request_method(self) -> str:
        """The method, in upper case."""
        return self._first.request.method

    @property
    def request_url(self) -> URL:
        """The URL asked for, joined with the session's base, with ``params``.

        Credentials are in it; the views of the log hide them.
        """
        return self._first.request.full_url()

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the session and of the request.

        Once there is a response: what aiohttp sent on the first hop.
        """
        first = self._first
        if first._sent_headers is not None:
            return first._sent_headers
        return first.request.merged_headers(self.default_headers)

    @property
    def request_content_preview(self) -> str | None:
        """The first characters of a text that was sent.

        None without a :class:`ContentPreviewingClient`, and where it has none. Holds
        credentials; the views of the log hide them.
        """
        return self._first._request_preview or self._request_preview

    @property
    def request_started_at(self) -> datetime:
        """When it began, as a date and time with a timezone."""
        call = self._call
        seconds = call.wall_clock + self.started - call.started
        return datetime.fromtimestamp(seconds, UTC)

    @property
    def response_timeout(self) -> float | None:
        """Seconds that the call or the attempt had, from its start; None for no limit.

        An attempt ends when its call does all the same.
        """
        deadline = self.deadline
        if deadline is None or deadline == math.inf:
            return None
        # To the microsecond, or clocks that run for long would show in the digits.
        return round(deadline - self.started, 6)

    @property
    def response_status(self) -> int | None:
        """The status, or None without a response."""
        # Without a property between: asked after each attempt by all who judge it.
        return (self._answer or self)._status

    @property
    def response_reason(self) -> str | None:
        """The reason phrase that came with the status."""
        return self._last._reason

    @property
    def response_headers(self) -> Mapping[str, str] | None:
        """The headers of the response, or None without one."""
        return self._last._headers

    @property
    def response_length(self) -> int | None:
        """Bytes of the body that were received, decoded, once it ended."""
        return self._last._length

    @property
    def response_content_preview(self) -> str | None:
        """The first characters of a text that was received, so far.

        None without a :class:`ContentPreviewingClient`, and where it has none. Holds
        credentials; the views of the log hide them.
        """
        start = self._last._response_preview
        return None if start is None else start.text()

    @property
    def duration(self) -> float | None:
        """Seconds to the headers of the response or to the failure."""
        ended = self._last._ended
        return None if ended is None else ended - self.started

    @property
    def total_duration(self) -> float | None:
        """Seconds to the end of the body or to the failure."""
        ended = self._last._body_ended
        return None if ended is None else ended - self.started

    @property
    def is_complete(self) -> bool:
        """Whether nothing will be added: the body ended or the call failed."""
        return self._last._body_ended is not None

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
            OSError: It cannot be written.
        """
        is_path = isinstance(path, str | os.PathLike)
        if not (is_path and isinstance(os.fspath(path), str)):
            raise bad_argument("path", path, "a path")
        # Most programs draw nothing.
        from ._timeline_svg import draw  # noqa: PLC0415

        Path(path).write_text(draw(self), encoding="utf-8", newline="\n")

    def __rich__(self) -> RichTree:
        """Draw the tree in colours with a time bar per attempt, for ``rich.print``."""
        # Only rich asks for it, and it need not be there.
        from ._rich_tree import RichTree  # noqa: PLC0415

        return RichTree(self)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        # An exception or a log record is pickled without the log that it carries.
        return type(None), ()

    def __copy__(self) -> RequestLog:
        return self

    def __deepcopy__(self, memo: object) -> RequestLog:
        return self

    def __repr__(self) -> str:
        return f"<RequestLog {self.render().splitlines()[0]}>"

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
                one. Where a library wrapped the exception, ``__cause__`` and then
                ``__context__`` are followed.
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
        shown = encodable(repr(source))
        raise LookupError(f"no log: {shown} is not of a call of a decorated session")
