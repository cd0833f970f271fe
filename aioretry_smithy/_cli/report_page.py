"""Write the report as an HTML page, for ``--html``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .call_files import check_writable
from .options import UsageError
from .output import ExitCode, complain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .._report.answers import Answers


class ReportPage:
    """The file for a page, or nothing where None is given.

    Raises:
        UsageError: The template engine is not installed.
        UnwritableError: The file cannot be written. Nothing was read by then.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        if file is not None:
            self._to_html = _to_html()
            # What is in it stays there until there is a report.
            check_writable("html", file)

    def write(self, answers: Answers) -> ExitCode:
        """Write the page; print an error if writing fails."""
        if self._file is None:
            return ExitCode.OK
        page = self._to_html(answers)
        try:
            self._file.write_text(page, encoding="utf-8", newline="\n")
        except OSError as error:
            complain(f"--html: {error}")
            return ExitCode.CANNOT_WRITE
        return ExitCode.OK


def _to_html() -> Callable[[Answers], str]:
    try:
        # The template engine need not be there, and few ask for a page.
        from .._report.page import to_html  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UsageError(f"--html: {error}") from None
    return to_html
