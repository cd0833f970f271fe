"""Answer the questions about many calls from their logs."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from .. import _checks as check
from .._errors import bad_argument
from .._log.request_log import RequestLog
from .document import blocks, plain_text
from .page import to_frame, to_html
from .reading import Reading
from .selection import KEYS, By, Selection

if TYPE_CHECKING:
    from .answers import Answers

_TOP: Final = 10
_LOGS: Final = "a list of RequestLog objects"


class Report:
    """A report: success of calls, where their time went, and hints.

    Made by :meth:`of`. Credentials are hidden in all views, as in those of the logs.
    """

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    @staticmethod
    def of(logs: Iterable[RequestLog], *, by: By = "path", top: int = _TOP) -> Report:
        """Look at the logs of calls.

        Args:
            logs: Such as :func:`capture_logs` collects. Calls that are under way, or
                that another one of them made, are left out.
            by: What the calls of a group have in common: ``"host"``, ``"method"``,
                ``"path"``, ``"endpoint"`` or ``"name"``.
            top: How many of the slowest calls, and of those with most attempts, are
                shown.

        Returns:
            The report; without any call, one of zeros.

        Raises:
            ValueError: An argument is not as described.

        >>> report = Report.of([])
        >>> report.to_dict()["summary"]["calls"]
        0
        """
        if by not in KEYS:
            raise bad_argument("by", by, f"one of {', '.join(KEYS)}")
        check.integer("top", top, 0)
        if isinstance(logs, str | bytes | PathLike):
            expected = f"{_LOGS}; aioretry-smithy report FILE reads files"
            raise bad_argument("logs", logs, expected)
        if not isinstance(logs, Iterable):
            raise bad_argument("logs", logs, _LOGS)
        reading = Reading(by, top, Selection())
        reading.add_calls([_values_of(log) for log in logs])
        return Report(reading.answers())

    def render(self) -> str:
        """Write the answers as plain text, with control characters escaped."""
        return plain_text(blocks(self.answers)).strip()

    def to_html(self) -> str:
        """Write the answers as a page with pictures, complete in one file.

        It has no script and loads nothing. Whatever the logs say is text in it.
        """
        return to_html(self.answers)

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        return to_frame(self.to_html())

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as JSON values: the keys of :ref:`report-keys`."""
        return self.answers.to_dict()

    def __repr__(self) -> str:
        return f"<Report of {self.answers.input.calls} calls>"


def _values_of(log: RequestLog) -> dict[str, object]:
    if not isinstance(log, RequestLog):
        raise bad_argument("logs", log, "RequestLog objects")
    return log.to_dict()
