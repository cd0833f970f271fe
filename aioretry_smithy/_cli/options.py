"""Read and check what options of several commands have in common."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import SupportsWrite

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


class UsageError(Exception):
    """The arguments make no sense; says what is wrong with them in one line."""


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

    def __init__(
        self, option_strings: Sequence[str], dest: str, version: str, **about: str
    ) -> None:
        super().__init__(option_strings, dest, nargs=0, help=about["help"])
        self._version = version

    def __call__(self, parser: argparse.ArgumentParser, *about: object) -> None:
        """Print it, and end the program."""
        print(self._version)
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
    if "\0" in text or not _is_directory(path.parent) or _is_directory(path):
        raise refused(text, "a file in a directory that exists")
    return path


def _is_directory(path: Path) -> bool:
    # Path.is_dir() raises for names that are too long, and closed directories.
    return os.path.isdir(path)  # noqa: PTH112
