"""Read lines from files, and find the call in each."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import stat
import sys
import zlib
from enum import StrEnum
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _typeshed import WriteableBuffer

    from .answers import Line


_MOST_BRACES: Final = 8
_BETWEEN: Final = re.compile(r"[\s,]*(?=\{)")


class Skipped(StrEnum):
    """The reasons for a line to be none of a call."""

    NO_JSON = "no_json"
    NO_CALL = "no_call"
    ATTEMPT = "attempt"
    """It is of an attempt: the logging client is inside the retrying client."""

    NOT_NESTED = "not_nested"
    """It is one of two lines, for the request or for the response."""

    SEVERAL = "several"
    """Several calls in a line (a list, for example)."""

    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    UNDER_WAY = "under_way"
    """The call had no outcome yet."""


# With an argument, json.loads() makes a decoder for each call.
_DECODER: Final = json.JSONDecoder(parse_constant=lambda name: None)


def decode(line: bytes) -> Line | Skipped:
    """Return the values of the call in a line, or why there is none.

    What stands before it is passed over, with braces in it, too. One level of what a
    container puts around a line is taken off.

    >>> decode(b'INFO {"type": "call", "name": "GET", "duration": NaN}')
    {'type': 'call', 'name': 'GET', 'duration': None}
    >>> decode(b"GET /orders")
    <Skipped.NO_JSON: 'no_json'>
    """
    text, found = line.decode("utf-8", "replace"), Skipped.NO_JSON
    start = text.find("{")
    for _ in range(_MOST_BRACES):
        if start < 0:
            break
        try:
            value, end = _DECODER.raw_decode(text, start)
        except RecursionError:
            return Skipped.TOO_DEEP
        except ValueError as error:
            if _is_cut(error):
                break  # what is nested in it is no line of its own
            end = start + 1
        else:
            call = _call_in(value)
            if call is not Skipped.NO_CALL:
                return Skipped.SEVERAL if _is_one_at(text, end) else call
            found = call
        start = text.find("{", end)
    return found


def _is_cut(error: ValueError) -> bool:
    """Say whether a text ends before its JSON does."""
    return isinstance(error, json.JSONDecodeError) and (
        error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")
    )


def _is_one_at(text: str, end: int) -> bool:
    """Say whether another line follows at once."""
    between = _BETWEEN.match(text, end)
    if between is None:
        return False
    value = _decoded(text[between.end() :])
    return isinstance(value, dict) and _call_in(value) is not Skipped.NO_CALL


def _call_in(value: Line) -> Line | Skipped:
    """Return the call in an object, or in an object nested inside."""
    found = kind_of(value)
    if found is not Skipped.NO_CALL:
        return found
    for inside in map(_decoded, value.values()):
        if isinstance(inside, dict):
            found = kind_of(inside)
            if found is not Skipped.NO_CALL:
                return found
    return Skipped.NO_CALL


def _decoded(text: object) -> object:
    """Decode a text with a JSON object inside; other values are returned as is."""
    start = text.find("{") if isinstance(text, str) else -1
    if not isinstance(text, str) or start < 0:
        return text
    try:
        value: object = _DECODER.raw_decode(text, start)[0]
    except (RecursionError, ValueError):
        return None
    return value


def kind_of(value: Line) -> Line | Skipped:
    """Return the values of a call, or the reason to skip the line."""
    kind = value.get("type")
    if kind is None and "request_started_at" in value and "name" in value:
        # What to_dict() returns says nothing of its kind.
        kind = "call" if value.get("attempt") is None else "attempt"
    if "name" in value or "request_started_at" in value or "duration" in value:
        if kind == "call":
            return value
        if kind == "attempt":
            return Skipped.ATTEMPT
        if kind in ("request", "response"):  # anything may stand there
            return Skipped.NOT_NESTED
    return Skipped.NO_CALL


STANDARD_INPUT: Final = "-"

_CHUNK: Final = 1 << 20
_LONGEST_LINE: Final = 16 << 20
_IN_MEMORY: Final = 16 << 20
"""Bytes of standard input that are kept in memory; more go to a temporary file."""

_GZIP: Final = b"\x1f\x8b"


class UnreadableError(Exception):
    """A file cannot be read; says which one and why."""


class _Part(io.RawIOBase):
    """The first bytes of a file that is decompressed, however it grows meanwhile."""

    def __init__(
        self, file: io.BufferedReader | SpooledTemporaryFile[bytes], size: int
    ) -> None:
        self._file, self._size = file, size

    def read(self, size: int = -1) -> bytes:
        """Read bytes, up to the end of the part."""
        return self._file.read(min(size, self._size - self._file.tell()))


class _Decompressed(io.RawIOBase):
    """The decompressed content of a file, up to where the file is broken."""

    def __init__(self, part: _Part) -> None:
        self._file = gzip.GzipFile(mode="rb", fileobj=part)
        self.failure: Exception | None = None

    def readable(self) -> bool:
        """Report the stream as readable."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read bytes, up to the end or to what cannot be decompressed."""
        view, data = memoryview(buffer), b""
        if self.failure is None:
            try:
                data = self._file.read1(len(view))
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                self.failure = error
        view[: len(data)] = data
        return len(data)


class LineSource:
    """A file that is read twice, up to its original length.

    Args:
        name: Its name; ``-`` is standard input.

    Raises:
        UnreadableError: It cannot be read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.warning: str | None = None
        self._file = self._opened()
        self._file.seek(0, os.SEEK_END)
        self.size = self._file.tell()

    def _opened(self) -> io.BufferedReader | SpooledTemporaryFile[bytes]:
        try:
            if self.name == STANDARD_INPUT:
                return _spooled(sys.stdin.buffer)
            file = Path(self.name).open("rb")  # noqa: SIM115
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file
            with file:
                # A pipe, which can be read once.
                return _spooled(file)
        except AttributeError:
            reason = "there is no standard input"
            raise UnreadableError(f"{self.name}: {reason}") from None
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> UnreadableError:
        reason = getattr(error, "strerror", None) or str(error)
        return UnreadableError(f"{self.name}: {reason}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def lines(self, progress: Callable[[int], None]) -> Iterator[bytes | Skipped]:
        """Yield the lines that are not empty.

        Args:
            progress: Called now and then with the bytes that were read since.

        Raises:
            UnreadableError: The file cannot be read any further.
        """
        file: io.BufferedReader | SpooledTemporaryFile[bytes]
        file, end, inside = self._file, self.size, None
        reported, is_rest = 0, False
        try:
            file.seek(0)
            is_compressed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            if is_compressed:
                inside = _Decompressed(_Part(self._file, self.size))
                file, end = io.BufferedReader(inside, _CHUNK), sys.maxsize
            # The file may grow meanwhile.
            while line := file.readline(min(_LONGEST_LINE, end - self._file.tell())):
                is_whole = line.endswith(b"\n")
                if not is_rest and len(line) == _LONGEST_LINE and not is_whole:
                    yield Skipped.TOO_LONG
                elif not is_rest and not line.isspace():
                    yield line.removesuffix(b"\n")
                is_rest = not is_whole
                position = self._file.tell()
                if position - reported >= _CHUNK:
                    progress(position - reported)
                    reported = position
        except OSError as error:
            raise self._unreadable(error) from None
        if inside is not None and inside.failure is not None:
            self.warning = f"{self.name}: read as far as it goes: {inside.failure}"
        progress(self.size - reported)


def _spooled(stream: BinaryIO) -> SpooledTemporaryFile[bytes]:
    """Copy what can be read once, to be read twice."""
    file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
    shutil.copyfileobj(stream, file)
    return file
