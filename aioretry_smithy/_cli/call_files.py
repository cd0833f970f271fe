"""Write each call that is reported on into files for other tools."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, Protocol, Self

from .._log.har import HarWriter
from .._log.trace_events import TraceWriter
from .._report.cleaning import cleaned
from .options import UsageError
from .plain_output import PlainOutput

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import TextIO

    from .._report.answers import Line


class UnwritableError(Exception):
    """A file cannot be written; says which one and why."""


class CallWriter(AbstractContextManager[object], Protocol):
    skipped: int

    def add(self, call: Mapping[str, object], /) -> None: ...


_WRITERS: Final[Mapping[str, Callable[[TextIO], CallWriter]]] = {
    "har": HarWriter,
    "trace": TraceWriter,
}


class CallFile:
    """A file of calls, which is begun with the first call and ended with its block.

    Args:
        option: The option that asks for it.
        path: The file.

    Raises:
        UnwritableError: The file cannot be written.
    """

    def __init__(self, option: str, path: Path) -> None:
        check_writable(option, path)
        self._option = option
        self._path = path
        self._open = ExitStack()
        self._writer: CallWriter | None = None

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
            said = f"--{self._option}: left out {left_out:,} calls without a time"
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
                writer = _WRITERS[self._option](self._open.enter_context(file))
                self._open.enter_context(writer)
                self._writer = writer
            self._writer.add(cleaned(values))

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UnwritableError(f"--{self._option}: {error}") from None


def check_writable(option: str, path: Path) -> None:
    """Look whether a file can be written, before anything is read.

    Raises:
        UnwritableError: It cannot.
    """
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UnwritableError(f"--{option}: {str(path)!r} cannot be written")


def check_apart(arguments: argparse.Namespace) -> None:
    """Refuse to write where something is read, or something else is written.

    Raises:
        UsageError: Two files are one.
    """
    seen = {os.path.realpath(name) for name in arguments.files}
    for option in ("html", *_WRITERS):
        path: Path | None = getattr(arguments, option)
        if path is None:
            continue
        real = os.path.realpath(path)
        if real in seen and not _is_device(path):
            raise UsageError(f"--{option}: {str(path)!r} (expected: a file of its own)")
        seen.add(real)


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()


def call_files(arguments: argparse.Namespace) -> Iterator[CallFile]:
    """Yield the files that were asked for."""
    for option in _WRITERS:
        path = getattr(arguments, option)
        if path is not None:
            yield CallFile(option, path)
