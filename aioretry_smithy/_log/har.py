"""Write calls as an HTTP Archive (HAR 1.2), which developer tools of browsers open.

A call is a page, and each of its attempts an entry. What HAR has no place for is in
fields that begin with an underscore, named as in :meth:`.RequestLog.to_dict`.
"""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from .har_entry import Json, entry_of, page_of, stop_of
from .plain_log import PlainLog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

_IN_MEMORY: Final = 1 << 20
"""How many bytes of pages are put aside before they go to a temporary file."""

_encode: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def to_har(call: Mapping[str, object]) -> Json:
    """Return a call, as :meth:`.RequestLog.to_dict` has it, as an archive."""
    calls = PlainLog(call).http_calls()
    pages = [*filter(None, (_page(log, number) for number, log in enumerate(calls, 1)))]
    entries = [entry for page in pages for entry in page.entries]
    return {
        "log": {**_head(), "pages": [page.values for page in pages], "entries": entries}
    }


class HarWriter:
    """Writes an archive call by call, and keeps none of them.

    It skips HTTP calls of which nobody knows when they began. A ``with`` block ends the
    file, unless an error leaves it. The file stays open.

    Args:
        file: Where to write. All that is written is ASCII.

    >>> import io, json
    >>> file = io.StringIO()
    >>> with HarWriter(file) as archive:
    ...     archive.add({"request_started_at": "2026-11-26T12:00:00+00:00"})
    >>> sorted(json.loads(file.getvalue())["log"])
    ['creator', 'entries', 'pages', 'version']
    """

    skipped: int
    """How many calls were left out."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        # Closed with the writer, after many calls.
        self._aside = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._written = self.skipped = 0
        file.write(f'{{"log":{_encode(_head())[:-1]},"entries":[')

    def add(self, call: Mapping[str, object]) -> None:
        """Write a call; of a function, all HTTP calls inside.

        Args:
            call: Values of :meth:`.RequestLog.to_dict`, or those of a line.
        """
        for log in PlainLog(call).http_calls():
            page = _page(log, self._written + 1)
            if page is None:
                self.skipped += 1
                continue
            separator = ",\n" if self._written else "\n"
            self._file.write(separator + ",\n".join(map(_encode, page.entries)))
            self._aside.write((separator + _encode(page.values)).encode())
            self._written += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        with self._aside:
            if kind is None:
                self._end()

    def _end(self) -> None:
        self._file.write('\n],"pages":[')
        self._aside.seek(0)
        while chunk := self._aside.read(_IN_MEMORY):
            self._file.write(chunk.decode())
        self._file.write("\n]}}\n")


class _Page(NamedTuple):
    """A call in an archive."""

    values: Json
    entries: list[Json]


def _page(call: PlainLog, number: int) -> _Page | None:
    """Describe a call; None where nobody knows when it began."""
    attempts = call.attempts or (call,)
    starts = [log.started for log in attempts]
    started = next(filter(None, [call.started, *starts]), None)
    if started is None:
        return None
    # Ids are not in old lines, and a line may be there twice.
    name = f"page_{number}"
    entries = [
        entry_of(log, name, call, start or started)
        for log, start in zip(attempts, starts, strict=True)
    ]
    entries[-1] |= stop_of(call)
    return _Page(page_of(call, name, started), entries)


def _head() -> Json:
    try:
        ours = version("aioretry-smithy")
    except PackageNotFoundError:
        # A copy of the package, which was not installed.
        ours = "unknown"
    return {"version": "1.2", "creator": {"name": "aioretry_smithy", "version": ours}}
