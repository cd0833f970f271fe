"""Report on the calls in files of logs."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from .._report.document import blocks
from .._report.reading import Reading, read
from .._report.selection import Selection
from .._report.sources import LineSource, UnreadableError
from .call_files import HarFile, UnwritableError, check_apart
from .output import ExitCode, complain, new_output
from .report_page import ReportPage

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from .._report.answers import Answers


def report(arguments: argparse.Namespace) -> ExitCode:
    """Read the files and print the report.

    Raises:
        UsageError: Two files are one, or a page was asked for and what makes it is not
            installed.
    """
    check_apart(arguments)
    try:
        return _report(arguments)
    except UnreadableError as error:
        complain(str(error))
        return ExitCode.CANNOT_READ
    except UnwritableError as error:
        complain(str(error))
        return ExitCode.CANNOT_WRITE


def _report(arguments: argparse.Namespace) -> ExitCode:
    page = ReportPage(arguments.html)
    answers = _answers(arguments)
    if not answers.input.calls:
        complain(_nothing(answers))
        return ExitCode.NO_CALLS
    # The page first: whoever reads the text may have left.
    code = page.write(answers)
    if arguments.json:
        print(json.dumps(answers.to_dict(), indent=2))
    else:
        new_output(sys.stdout).document(blocks(answers))
    return code


def _answers(arguments: argparse.Namespace) -> Answers:
    with ExitStack() as stack:
        sources = _opened(arguments.files, stack)
        listeners = []
        if arguments.har is not None:
            listeners.append(stack.enter_context(HarFile(arguments.har)).add)
        matches = tuple(arguments.matches)
        reading = Reading(
            arguments.by,
            arguments.top,
            Selection(arguments.since, arguments.until, matches),
            listeners,
        )
        with new_output(sys.stderr).progress() as progress:
            return read(sources, reading, lambda done: progress("reading", done))


def _opened(names: Sequence[str], stack: ExitStack) -> list[LineSource]:
    """Open all files before any is read."""
    sources = []
    for name in names:
        source = LineSource(name)
        stack.callback(source.close)
        sources.append(source)
    return sources


def _nothing(answers: Answers) -> str:
    """Say why there is no call to report on, and what to do about it."""
    read = answers.input
    nested = "LogFormatter.json(nested=True)"
    if read.skipped.get("not_nested"):
        return f"the lines are not nested (expected: {nested})"
    if read.skipped.get("attempt"):
        where = "put the LoggingClient outside the retrying client"
        return f"there are attempts but no calls: {where}"
    if read.skipped.get("several"):
        return "several calls stand on one line (expected: a line for each)"
    if read.left_out:
        return f"none of {read.left_out:,} calls is in that time and matches"
    if read.lines:
        return f"none of {read.lines:,} lines is a call (expected: those of {nested})"
    return "there is no line"
