"""Compile a chain of clients into rows: hooks, retries, hooks, and what sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from .._call.hooks import Hooks
    from .ending import Retrier
    from .sender import Sender

    Told: TypeAlias = tuple[tuple[Hooks, None], ...]


class Row(NamedTuple):
    """A chain, or the part of it up to the first client that has a way of its own."""

    outer: tuple[Hooks, ...]
    """What is entered around all attempts, from the outside in."""

    retrier: Retrier
    """What makes attempts; :data:`.ONCE` where nothing does."""

    inner: tuple[Hooks, ...]
    """What is entered around each attempt, or around the one request."""

    sender: Sender
    """What it ends in."""

    told_of_calls: Told = ()
    """What is told of the outcome of a call, and entered by none of it."""

    told_of_attempts: Told = ()
    """What is told of the outcome of an attempt, and entered by none of it."""

    @classmethod
    def of(
        cls,
        outer: list[Hooks],
        retrier: Retrier,
        inner: list[Hooks],
        sender: Sender,
    ) -> Row:
        """Make a row; hooks that need not be entered are not, where all are so."""
        told_of_calls, told_of_attempts = _only_told(outer), _only_told(inner)
        return cls(
            () if told_of_calls else tuple(outer),
            retrier,
            () if told_of_attempts else tuple(inner),
            sender,
            told_of_calls,
            told_of_attempts,
        )


def _only_told(hooks: list[Hooks]) -> Told:
    """Return hooks with their permits, where none of them is to be entered."""
    return (
        ()
        if any(each.enters for each in hooks)
        else tuple((each, None) for each in hooks)
    )


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
