"""Look below the quoting of a text: percent signs, and backslashes as in JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Printable ASCII. A quoted blank stays quoted, for it ends nothing that is quoted.
QUOTED = re.compile(
    r"%(2[1-9A-Fa-f]|[3-6][0-9A-Fa-f]|7[0-9A-Ea-e])|\\+(?:u([0-9A-Fa-f]{4})|(/)|.?)",
    re.DOTALL,
)
_MOST_LAYERS = 5


def is_found_below(text: str, is_found: Callable[[str], bool]) -> bool:
    """Say whether something is in what a text says with its quoting taken off.

    It is looked for below each layer, not in the text as it is. It counts as found in
    what is quoted more than five times.

    >>> is_found_below("a%253Db", lambda text: "=" in text)
    True
    """
    for _ in range(_MOST_LAYERS):
        text, quoted = QUOTED.subn(_unquoted, text)
        if not quoted:
            return False
        if is_found(text):
            return True
    return QUOTED.search(text) is not None


def _unquoted(match: re.Match[str]) -> str:
    number = match[1] or match[2]
    return chr(int(number, 16)) if number else match[3] or "'"
