"""Draw numbers over time in a line of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_NOTHING: Final = " "


def sparkline(values: Sequence[float | None]) -> str:
    """Draw a character for each number, None as a blank.

    >>> sparkline([0, 1, None, 8])
    '▁▂ █'
    """
    largest = max((value for value in values if value is not None), default=0.0)
    scale = (len(_BLOCKS) - 1) / largest if largest else 0.0
    return "".join(
        _NOTHING if value is None else _BLOCKS[int(value * scale + 0.5)]
        for value in values
    )


def condensed(
    values: Sequence[float | None], cells: int, *, is_sum: bool
) -> list[float | None]:
    """Put neighbours together, as a sum or as the largest of them, to so few cells.

    >>> condensed([1, 2, None, 4, None], 3, is_sum=True)
    [3, 4, None]
    """
    each = max(1, -(-len(values) // cells))
    parts = (values[n : n + each] for n in range(0, len(values), each))
    known = ([value for value in part if value is not None] for part in parts)
    merge = sum if is_sum else max
    return [merge(part) if part else None for part in known]
