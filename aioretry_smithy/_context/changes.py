"""Notice when a chain has to be compiled again."""

from __future__ import annotations

from typing import Any, Final


class Changes:
    """Counts the changes of clients, after which their rows are compiled again."""

    number = 0


changes: Final = Changes()

_COMPILED: Final = frozenset({"config", "delegate", "execute"})
"""The attributes that a row is compiled from."""


class Watched:
    """A client of which it is noted when a row has to be compiled again."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _COMPILED:
            changes.number += 1

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if name in _COMPILED:
            changes.number += 1
