"""The subcommand ``report``: report on the calls in files of logs, also as a page."""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .._log.exports import HarArchive
from .._log.saved_log import SavedLog, cleaned
from .._report.answers import line_of_warning
from .._report.document import blocks
from .._report.page import to_html
from .._report.report import Reading, read
from .._report.selection import Selection
from .._report.sources import STANDARD_INPUT, LineSource, UnreadableError
from .._report.tally import utc
from .options import UsageError, is_name
from .output import ExitCode, complain, new_output, save
from .plain_output import PlainOutput

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from .._report.answers import Answers, Line


def check_apart(arguments: argparse.Namespace) -> None:
    """Refuse to read a file twice, and to write over what is read or written.

    Raises:
        UsageError: Two files are one.
    """
    seen: set[object] = set()
    for name in arguments.files:
        _add_once(seen, name, f"{name!r} (expected: once)")
    for option in ("html", "har"):
        path: Path | None = getattr(arguments, option)
        if path is not None:
            complaint = f"--{option}: {str(path)!r} (expected: a file of its own)"
            _add_once(seen, path, complaint)


def _add_once(seen: set[object], name: str | Path, complaint: str) -> None:
    identity = _identity(name)
    if identity in seen:
        raise UsageError(complaint)
    if identity is not None:
        seen.add(identity)


def _identity(name: str | Path) -> object:
    """Return what all names of a file have in common; None of a device.

    Standard input is the file that a shell has it read. Nothing is lost on a device,
    which may be used as often as one likes.
    """
    is_input = name == STANDARD_INPUT
    try:
        found = os.fstat(sys.stdin.fileno()) if is_input else Path(name).stat()
    except (OSError, ValueError, AttributeError):
        # Nothing is there yet, or what stands for standard input is no file.
        has_path = not is_input and is_name(str(name))
        return os.path.realpath(name) if has_path else name
    if stat.S_ISREG(found.st_mode):
        return found.st_dev, found.st_ino
    return name if is_input else None


def report(arguments: argparse.Namespace) -> ExitCode:
    """Read the files and print the report.

    Raises:
        UsageError: Two files are one.
    """
    check_apart(arguments)
    try:
        with closing(HarArchive()) as archive:
            return _report(arguments, archive)
    except UnreadableError as error:
        complain(str(error))
        return ExitCode.CANNOT_READ


def _report(arguments: argparse.Namespace, archive: HarArchive) -> ExitCode:
    html, har = arguments.html, arguments.har
    # What is in a file stays there until there is a report.
    for option, path in (("html", html), ("har", har)):
        if path is not None and not _is_writable(path):
            complain(f"--{option}: {str(path)!r} cannot be written")
            return ExitCode.CANNOT_WRITE
    answers = _answers(arguments, [] if har is None else [_adding(archive)])
    if not answers.input.calls:
        for warning in answers.input.warnings:
            PlainOutput(sys.stderr).line(line_of_warning(warning))
        complain(_nothing(answers, arguments))
        return ExitCode.NO_CALLS
    # The files first: whoever reads the text may have left.
    code = ExitCode.OK
    if html is not None:
        page = to_html(answers)
        code = save("html", partial(html.write_text, page, "utf-8", newline="\n"))
    if har is not None:
        code = save("har", partial(_write, archive, har)) or code
        if archive.skipped:
            said = f"--har: left out {archive.skipped:,} calls without a time"
            PlainOutput(sys.stderr).line(said)
    if arguments.json:
        print(json.dumps(answers.to_dict(), indent=2))
    else:
        new_output(sys.stdout).document(blocks(answers))
    return code


def _is_writable(path: Path) -> bool:
    return os.access(path if path.exists() else path.parent, os.W_OK)


def _write(archive: HarArchive, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        archive.write(file)


def _adding(archive: HarArchive) -> Callable[[Line], None]:
    return lambda values: archive.add(SavedLog(cleaned(values)))


def _answers(
    arguments: argparse.Namespace, listeners: Sequence[Callable[[Line], None]]
) -> Answers:
    with ExitStack() as stack:
        sources = _opened(arguments.files, stack)
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


def _nothing(answers: Answers, arguments: argparse.Namespace) -> str:
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
        return f"none of {read.left_out:,} calls {_wanted(arguments)}"
    if read.lines:
        return f"none of {read.lines:,} lines is a call (expected: those of {nested})"
    return "there is no line"


def _wanted(arguments: argparse.Namespace) -> str:
    """Name the options that no call satisfied, with times in UTC."""
    ends = ("from", arguments.since), ("to", arguments.until)
    times = [f"{word} {utc(at)}" for word, at in ends if at is not None]
    began = [f"began {' '.join(times)}"] if times else []
    return " and ".join([*began, *(["matches"] if arguments.matches else [])])
