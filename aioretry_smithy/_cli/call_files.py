"""The file into which each call that is reported on is written for other tools."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from .._log.har import HarWriter
from .._report.sources import STANDARD_INPUT
from .._report.values import cleaned
from .options import UsageError
from .plain_output import PlainOutput

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from types import TracebackType

    from .._report.answers import Line


class UnwritableError(Exception):
    """A file cannot be written; says which one and why."""


class HarFile:
    """An archive, which is begun with the first call and ended with its block.

    Args:
        path: The file.

    Raises:
        UnwritableError: The file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        check_writable("har", path)
        self._path = path
        self._open = ExitStack()
        self._writer: HarWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._complaining():
            self._open.__exit__(kind, error, traceback)
        left_out = 0 if self._writer is None else self._writer.skipped
        if left_out:
            said = f"--har: left out {left_out:,} calls without a time"
            PlainOutput(sys.stderr).line(said)

    def add(self, values: Line) -> None:
        """Write a call.

        Raises:
            UnwritableError: The file cannot be written.
        """
        with self._complaining():
            if self._writer is None:
                # What was in it stays there where there is no call.
                file = self._path.open("w", encoding="utf-8", newline="\n")
                writer = HarWriter(self._open.enter_context(file))
                self._writer = self._open.enter_context(writer)
            self._writer.add(cleaned(values))

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UnwritableError(f"--har: {error}") from None


def check_writable(option: str, path: Path) -> None:
    """Look whether a file can be written, before anything is read.

    Raises:
        UnwritableError: It cannot.
    """
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UnwritableError(f"--{option}: {str(path)!r} cannot be written")


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
    """Return what all names of a file have in common, hard links too.

    Standard input is the file that a shell has it read. Devices may be used as often
    as one likes: None.
    """
    is_input = name == STANDARD_INPUT
    try:
        found = os.fstat(sys.stdin.fileno()) if is_input else Path(name).stat()
    except (OSError, ValueError, AttributeError):
        # Nothing is there yet, or what stands for standard input is no file.
        return name if is_input else os.path.realpath(name)
    if stat.S_ISREG(found.st_mode):
        return found.st_dev, found.st_ino
    return name if is_input else None
