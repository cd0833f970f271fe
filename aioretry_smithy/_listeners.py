"""Deliver events to listeners, in order."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

from ._errors import bad_argument

_logger = logging.getLogger("aioretry_smithy")

L = TypeVar("L")


class Listeners(Generic[L]):
    """The listeners of an object; events are delivered one at a time.

    Raises:
        ValueError: Something among the *listeners* is of another kind.
    """

    __slots__ = ("_events", "_is_delivering", "_listeners", "_owner", "has_any")

    has_any: bool
    """Whether there is a listener at all."""

    def __init__(self, owner: str, listeners: Iterable[L], kind: type[L]) -> None:
        self._owner = owner
        self._listeners = checked(listeners, kind)
        self.has_any = bool(self._listeners)
        self._events: deque[Callable[[L], None]] = deque()
        self._is_delivering = False

    def notify(self, *events: Callable[[L], None]) -> None:
        """Deliver *events* to every listener, after those under delivery now."""
        if not self.has_any:
            return
        self._events.extend(events)
        # A listener that uses the object comes back here. Its new events wait until all
        # listeners have got the present one.
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
                _logger.warning("%s: %r raised", self._owner, listener, exc_info=True)


async def tell(
    owner: str,
    listeners: Iterable[L],
    event: Callable[[L], Awaitable[None] | None],
) -> None:
    """Deliver an event to listeners, awaiting each in turn.

    What they raise is logged, as :class:`Listeners` does. A cancellation goes through.
    """
    for listener in listeners:
        try:
            pending = event(listener)
            if isinstance(pending, Awaitable):
                await pending
        except Exception:
            _logger.warning("%s: %r raised", owner, listener, exc_info=True)


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
