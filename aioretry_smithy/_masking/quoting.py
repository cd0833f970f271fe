"""Look below the percent-quoting of a text, and find where each part stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Span = tuple[int, int]

MOST_LAYERS = 5
"""How often something may be quoted to be looked into; what is left is in doubt."""

# Printable ASCII. A quoted blank stays quoted, for it ends nothing that is quoted.
_QUOTED = re.compile("%(2[1-9A-Fa-f]|[3-6][0-9A-Fa-f]|7[0-9A-Ea-e])")
_FIELD = re.compile(r"[^\s&#]+")
_BEFORE_VALUE = re.compile(r".*[?;=]", re.DOTALL)


def below_quoting(text: str, find: Callable[[str], Iterable[Span]]) -> Iterator[Span]:
    """Find something in a text, and in what it says with its quoting taken off.

    Takes :data:`MOST_LAYERS` times the time that *find* takes at most: what is quoted
    more often than that is found too, whatever it is. Where something is found both
    quoted and with its quoting taken off, the former knows better where it ends.

    Args:
        text: The text.
        find: Returns where that which is looked for begins and ends.

    Yields:
        Where it begins and ends in *text*, in no order; some overlap.

    >>> from re import finditer
    >>> found = below_quoting(
    ...     "b=%62%3D%2562", lambda text: (m.span() for m in finditer("b", text))
    ... )
    >>> [*found]
    [(0, 1), (2, 5), (8, 13)]
    """
    layer: str = text
    places: Sequence[int] = range(len(text) + 1)
    found: dict[int, int] = {}
    for number in range(MOST_LAYERS + 1):
        if number:
            layer, places = _without_quoting(layer, places)
        here = [(places[start], places[end]) for start, end in find(layer)]
        yield from (span for span in here if span[0] not in found)
        if _QUOTED.search(layer) is None:
            return
        found.update(here)
    for start, end in _still_quoted(layer):
        yield places[start], places[end]


def _without_quoting(text: str, places: Sequence[int]) -> tuple[str, list[int]]:
    """Take one layer off.

    Args:
        text: What is quoted.
        places: Where each of its characters stands in the whole, and where it ends.
    """
    shown: list[str] = []
    left: list[int] = []
    position = 0
    for match in _QUOTED.finditer(text):
        start = match.start()
        shown += (text[position:start], chr(int(match[1], 16)))
        left += places[position : start + 1]
        position = match.end()
    return "".join([*shown, text[position:]]), [*left, *places[position:]]


def _still_quoted(text: str) -> Iterator[Span]:
    for field in _FIELD.finditer(text):
        start, end = field.span()
        if quoted := _QUOTED.search(text, start, end):
            name = _BEFORE_VALUE.match(text, start, quoted.start())
            yield start if name is None else name.end(), end
