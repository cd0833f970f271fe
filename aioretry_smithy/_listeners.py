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

    __slots__ = ("_listeners", "_news", "_telling", "_whose", "anybody")

    anybody: bool
    """Whether there is a listener at all."""

    def __init__(self, whose: str, listeners: Iterable[L], kind: type[L]) -> None:
        self._whose = whose
        self._listeners = checked(listeners, kind)
        self.anybody = bool(self._listeners)
        self._news: deque[Callable[[L], None]] = deque()
        self._telling = False

    def tell(self, *news: Callable[[L], None]) -> None:
        """Let every listener hear the *news*, after what it is hearing now."""
        if not self.anybody:
            return
        self._news.extend(news)
        # A listener that uses the object comes back here: what it causes has to wait
        # until the others have heard what it has heard.
        if self._telling:
            return
        self._telling = True
        try:
            while self._news:
                self._tell(self._news.popleft())
        finally:
            self._telling = False

    def _tell(self, news: Callable[[L], None]) -> None:
        for listener in self._listeners:
            try:
                news(listener)
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
