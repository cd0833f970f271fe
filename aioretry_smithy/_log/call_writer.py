"""Write calls into a file, one after another, and put aside what comes at its end."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

IN_MEMORY: Final = 1 << 20
"""How many bytes are put aside before they go to a temporary file."""

encode: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class CallWriter(ABC):
    """Writes calls into a file, and puts aside what comes at its end.

    A ``with`` block ends the file, unless an error leaves it. The file stays open.

    Args:
        file: Where to write. All that is written is ASCII.
    """

    skipped: int
    """How many calls were left out."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        # Closed with the writer, after many calls.
        self._aside = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
        self.skipped = 0

    @abstractmethod
    def add(self, call: Mapping[str, object]) -> None:
        """Write a call.

        Args:
            call: Values of :meth:`.RequestLog.to_dict`, or those of a line.
        """

    @abstractmethod
    def _end(self) -> None:
        """Write the end of the file, with what was put aside."""

    def close(self) -> None:
        """End the file, which then is whole, even without calls."""
        with self._aside:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:
            self.close()
        else:
            self._aside.close()
