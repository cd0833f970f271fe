"""Deliver events to listeners, in order."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from ._errors import bad_argument

_logger = logging.getLogger("aioretry_smithy")

L = TypeVar("L")


class Listeners(Generic[L]):
    """The listeners of one object, told one event after the other.

    Args:
        whose: Names that object in the log, where a listener raises.
        listeners: Who is told, in this order.
        kind: What each of them has to be.

    Raises:
        ValueError: Something among the *listeners* is of another kind.
    """

    __slots__ = ("_events", "_is_delivering", "_listeners", "_whose", "anybody")

    anybody: bool
    """Whether there is a listener at all."""

    def __init__(self, whose: str, listeners: Iterable[L], kind: type[L]) -> None:
        self._whose = whose
        self._listeners = checked(listeners, kind)
        self.anybody = bool(self._listeners)
        self._events: deque[Callable[[L], None]] = deque()
        self._is_delivering = False

    def notify(self, *events: Callable[[L], None]) -> None:
        """Let every listener hear of the *events*, after what it is hearing now."""
        if not self.anybody:
            return
        self._events.extend(events)
        # A listener that uses the object comes back here: what it causes has to wait
        # until the others have heard what it has heard.
        if self._is_delivering:
            return
        self._is_delivering = True
        try:
            while self._events:
                self._deliver(self._events.popleft())
        finally:
            self._is_delivering = False

    def _deliver(self, event: Callable[[L], None]) -> None:
        for listener in self._listeners:
            try:
                event(listener)
            except Exception:
                _logger.warning("%s: %r raised", self._whose, listener, exc_info=True)


def checked(listeners: Iterable[L], kind: type[L]) -> tuple[L, ...]:
    """Return the listeners of an argument as a tuple.

    Raises:
        ValueError: Something among the *listeners* is of another kind.
    """
    if isinstance(listeners, Iterable):
        found = tuple(listeners)
        if all(isinstance(listener, kind) for listener in found):
            return found
    raise bad_argument("listeners", listeners, f"{kind.__name__} objects")
