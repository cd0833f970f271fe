"""Remember which calls were seen, in little memory."""

from __future__ import annotations

import re
from typing import Final

_ID: Final = re.compile(r"([a-z0-9]{1,16})-(0|[1-9][0-9]{0,14})")
_PAGE: Final = 256


class KnownIds:
    """A set of ids of calls: a bit for each number of a process.

    >>> known = KnownIds()
    >>> known.add("k3j9x0qa-17")
    >>> "k3j9x0qa-17" in known, "k3j9x0qa-18" in known
    (True, False)
    """

    def __init__(self) -> None:
        self._pages: dict[tuple[str, int], int] = {}
        self._others: set[str] = set()

    def add(self, call_id: str) -> None:
        """Remember an id."""
        match = _ID.fullmatch(call_id)
        if match is None:
            self._others.add(call_id)
            return
        page, bit = divmod(int(match[2]), _PAGE)
        key = match[1], page
        self._pages[key] = self._pages.get(key, 0) | 1 << bit

    def __contains__(self, call_id: str) -> bool:
        if not self._pages and not self._others:
            return False
        if call_id in self._others:
            return True
        match = _ID.fullmatch(call_id)
        if match is None:
            return False
        page, bit = divmod(int(match[2]), _PAGE)
        return bool(self._pages.get((match[1], page), 0) >> bit & 1)
