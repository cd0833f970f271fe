"""Draw a log, turn it into values, and find it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast, overload

from ._capture import find_log
from ._causes import CallBound
from ._errors import bad_argument
from ._render import render
from ._text import encodable
from ._values import to_dict

if TYPE_CHECKING:
    from ._log import RequestLog
    from ._rich_tree import RichTree

_D = TypeVar("_D")
_MISSING: Final = object()


class LogViews(CallBound):
    """The views of a :class:`RequestLog`, credentials hidden in all of them."""

    __slots__ = ()

    @property
    def _log(self) -> RequestLog:
        # The one class that derives from this one.
        return cast("RequestLog", self)

    def render(self) -> str:
        """Draw the call and its attempts as a tree of lines, credentials hidden."""
        return render(self._log)

    def to_dict(self) -> dict[str, Any]:
        """Return the log and its attempts as JSON values, credentials hidden."""
        return to_dict(self._log)

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

        Path(path).write_text(draw(self._log), encoding="utf-8", newline="\n")

    def __rich__(self) -> RichTree:
        """Draw the tree in colours with a time bar per attempt, for ``rich.print``."""
        # Only rich asks for it, and it need not be there.
        from ._rich_tree import RichTree  # noqa: PLC0415

        return RichTree(self._log)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        # An exception or a log record is pickled without the log that it carries.
        return type(None), ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
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
