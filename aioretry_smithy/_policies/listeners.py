"""Deliver events to listeners, and log what a dry run would have done."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Generic, TypeVar

from .. import _checks as check
from .._clock import loop_time
from .._errors import bad_argument, is_plain_function

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

    def add(self, listener: L) -> None:
        """Add a listener, which gets the events from now on, unless it was added."""
        if not any(each is listener for each in self._listeners):
            self._listeners = (*self._listeners, listener)
            self.has_any = True

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


def checked(
    listeners: Iterable[L], kind: type[L], *, may_wait: bool = False
) -> tuple[L, ...]:
    """Return the listeners of an argument as a tuple.

    Args:
        listeners: The argument.
        kind: What listeners are.
        may_wait: Whether their methods are awaited, and may be asynchronous.

    Raises:
        ValueError: Something among the *listeners* is of another kind.
    """
    if isinstance(listeners, Iterable):
        found = tuple(listeners)
        if all(isinstance(listener, kind) for listener in found):
            for listener in () if may_wait else found:
                check_plain("listeners", listener, kind)
            return found
    raise bad_argument("listeners", listeners, f"{kind.__name__} objects")


def check_plain(name: str, listener: object, kind: type[object]) -> None:
    """Refuse a listener with asynchronous methods, which nobody would await.

    Raises:
        ValueError: It has one.
    """
    for method in vars(kind):
        if method.startswith("on_") and not is_plain_function(
            getattr(listener, method)
        ):
            raise bad_argument(name, listener, f"with a plain {method}()")


_INTERVAL: Final = 60.0
"""Seconds between two warnings at least."""


class DryRun:
    """Logs what ``enforce=False`` lets through: each request, and how many of them.

    Each request is logged at DEBUG. The first one is a WARNING too; after that there is
    one a minute at most, with the number of requests since the last one. There is no
    timer: what nothing follows is not warned of until something does.

    Args:
        owner: What does not act, for the warning.
    """

    __slots__ = ("_owner", "_refused", "_waited", "_warned_at")

    def __init__(self, owner: str) -> None:
        self._owner = owner
        # Since the last warning.
        self._refused = self._waited = 0
        self._warned_at = -math.inf

    @classmethod
    def unless(cls, enforce: bool, owner: str) -> DryRun | None:
        """Return the dry run that *enforce* asks for when it is False.

        Raises:
            ValueError: It is no bool.
        """
        check.boolean("enforce", enforce)
        return None if enforce else cls(owner)

    def refused(self, request: object, error: Exception) -> None:
        """Note a request that would not have been sent.

        Args:
            request: The request, whose repr shows no secrets.
            error: What it would have raised.
        """
        _logger.debug("would have refused %r: %s", request, error)
        self._refused += 1
        self._warn()

    def waited(self, request: object, seconds: float, limit: object) -> None:
        """Note a request that would have been sent later.

        Args:
            request: The request, whose repr shows no secrets.
            seconds: How long it would have waited, as far as that can be known.
            limit: What it would have waited for.
        """
        _logger.debug("would have waited %.3f s for %r: %r", seconds, limit, request)
        self._waited += 1
        self._warn()

    def _warn(self) -> None:
        """Say the numbers, unless a minute has not passed."""
        now = loop_time()
        passed = now - self._warned_at
        # Another event loop may have another clock, which is behind.
        if 0 <= passed < _INTERVAL:
            return
        since = f", in {passed:.0f} s" if 0 <= passed < math.inf else ""
        what = "%s is not enforced: would have refused: %d, would have waited: %d%s"
        _logger.warning(what, self._owner, self._refused, self._waited, since)
        self._refused = self._waited = 0
        self._warned_at = now
