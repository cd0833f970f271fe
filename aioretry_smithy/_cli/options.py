"""Read and check what options of several commands have in common, and the report's."""

from __future__ import annotations

import argparse
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

import aioretry_smithy

from .._report.selection import KEYS, MATCHED
from .output import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import SupportsWrite


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


class UsageError(Exception):
    """The arguments make no sense; the message says why in a line."""


class Parser(argparse.ArgumentParser):
    """Raises for arguments that make no sense."""

    def error(self, message: str) -> NoReturn:
        """Print a usage error and exit."""
        raise UsageError(message)

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Write the help; unlike in argparse, a disk that is full is an error."""
        print(self.format_help(), end="", file=file)


class PrintVersion(argparse.Action):
    """Prints the version; fails if the output cannot be written."""

    def __init__(self, option_strings: Sequence[str], dest: str, **about: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help=about["help"])

    def __call__(self, parser: argparse.ArgumentParser, *about: object) -> None:
        """Print the version, and exit."""
        # Asked for here only: a checkout that nobody has installed has none.
        print(f"{PROGRAM} {aioretry_smithy.__version__}")
        parser.exit()


def add_json(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add the option for a JSON document."""
    parser.add_argument("--json", action="store_true", help=meaning)


def refused(text: str, expected: str) -> argparse.ArgumentTypeError:
    """Make the error for a value: it says what would have been right."""
    return argparse.ArgumentTypeError(f"{text!r} (expected: {expected})")


def file_to_write(text: str) -> Path:
    """Read the name of a file to write."""
    if text == "-":
        raise refused(text, "a file, not standard output")
    # What comes before it may cost something, and must not be done for nothing.
    path = Path(text)
    is_there = is_name(text) and _is_directory(path.parent)
    if not is_there or _is_directory(path):
        raise refused(text, "a file in a directory that exists")
    return path


def is_name(text: str) -> bool:
    """Say whether a file may have this name on this system, anywhere."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _is_directory(path: Path) -> bool:
    # Path.is_dir() raises for names that are too long, and closed directories.
    return os.path.isdir(path)  # noqa: PTH112


_AGO: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def add_report(commands: Commands) -> None:
    """Add the subcommand ``report``, with its options."""
    parser = commands.add_parser(
        "report",
        help="tell from the logs of many calls where their time went, and what failed",
        description="Read the lines of LogFormatter.json(nested=True), and tell how the"
        " calls went, where their time went, what failed and when, and what to change.",
        epilog="Exit code: 0 if there was a call, 64 for bad usage, 65 without any,"
        " 66 for a file that cannot be read, 73 for one that cannot be written, 130 for"
        " Ctrl-C.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "files",
        metavar="CALLS.jsonl",
        nargs="+",
        help="files to read, compressed with gzip or not; - is standard input",
    )
    _add_selection(parser)
    parser.add_argument(
        "--top",
        metavar="N",
        type=_number,
        default=10,
        help="how many of the slowest calls, and of those with most attempts, to show"
        " (default: %(default)s)",
    )
    for name, meaning in (
        ("html", "write the report as a page, with pictures"),
        ("har", "write the attempts as an archive for the developer tools of browsers"),
    ):
        parser.add_argument(
            f"--{name}",
            metavar="FILE",
            type=file_to_write,
            help=f"{meaning} (default: do not)",
        )
    add_json(parser, "print one JSON document to standard output (default: text)")


def _add_selection(parser: Parser) -> None:
    parser.add_argument(
        "--by",
        choices=KEYS,
        default="path",
        help="what the calls of a group have in common (default: %(default)s)",
    )
    for name, meaning in (("since", "first"), ("until", "last")):
        parser.add_argument(
            f"--{name}",
            metavar="TIME",
            type=moment,
            help=f"the {meaning} moment for a call to begin: 2026-11-23T12:00, in local"
            " time unless it has a zone, or 10m for ten minutes ago (default: any)",
        )
    parser.add_argument(
        "--match",
        dest="matches",
        metavar="KEY=GLOB",
        action="append",
        type=_match,
        default=[],
        help="count only calls like this, such as path=/orders/*; may be repeated, and"
        f" all must match; the keys are {', '.join(MATCHED)} (default: all calls)",
    )


def moment(text: str) -> float:
    """Read a moment, or how long ago it was, as seconds since 1970."""
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            since = timedelta(**{_UNITS[ago[2]]: float(ago[1])})
            return (datetime.now(UTC) - since).timestamp()
        # One without a zone is in local time.
        return datetime.fromisoformat(text).timestamp()
    except (OSError, OverflowError, ValueError):
        expected = "a moment such as 2026-11-23T12:00, or 10m for ten minutes ago"
        raise refused(text, expected) from None


def _match(text: str) -> tuple[str, str]:
    key, separator, pattern = text.partition("=")
    if not separator or key not in MATCHED:
        raise refused(text, f"KEY=GLOB with one of {', '.join(MATCHED)}")
    return key, pattern


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise refused(text, "an integer from 0 to 9999")
    return int(text)
