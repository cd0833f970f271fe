"""Add up the waits of a request for its connection: in the pool, DNS, connect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Part: TypeAlias = Literal["queued", "dns", "connect"]
"""A part of the wait for a connection."""


@dataclass(frozen=True, slots=True)
class ConnectionTimings:
    """The seconds that a request waited for a connection, by part.

    After redirects these are the sums of all hops. None stands for what did not happen.
    A wait that goes on, or that was cut, counts up to now, or up to then.

    >>> ConnectionTimings(queued=0.75, dns=None, connect=0.25, reused=False).waited
    1.0
    """

    queued: float | None
    """Seconds in the queue of the session's own connection pool."""

    dns: float | None
    """Seconds to resolve the name of the host."""

    connect: float | None
    """Seconds to connect, with the TLS handshake, but without :attr:`dns`."""

    reused: bool
    """Whether the connection was reused (after redirects, the last connection)."""

    @property
    def waited(self) -> float:
        """The sum of the seconds that the request waited."""
        return sum(filter(None, (self.queued, self.dns, self.connect)))


class ConnectionTimes:
    """Adds up the waits of one request, hop by hop, while it is sent."""

    __slots__ = ("_seconds", "_since", "began", "part", "reused")

    began: float
    """When the first wait began, by the event loop's clock."""

    part: Part | None
    """The part that goes on now."""

    reused: bool
    """Whether the last hop had a connection that was used before."""

    def __init__(self, now: float) -> None:
        self.began = self._since = now
        self.reused = False
        self.part = None
        self._seconds: dict[Part, float] = {}

    def wait_for(self, part: Part | None, now: float) -> None:
        """End the current wait, and begin the wait for the next part, if any.

        A request that waits has no connection yet.
        """
        self._seconds = self._up_to(now)
        self.part, self._since = part, now
        if part is not None:
            self.reused = False
            if not self._seconds:
                self.began = now

    def shown(self, now: float) -> ConnectionTimings:
        """Return the waits up to now."""
        seconds = self._up_to(now).get
        parts = seconds("queued"), seconds("dns"), seconds("connect")
        return ConnectionTimings(*parts, self.reused)

    def _up_to(self, now: float) -> dict[Part, float]:
        part, seconds = self.part, self._seconds
        if part is None:
            return seconds
        passed = max(0.0, now - self._since)
        return {**seconds, part: seconds.get(part, 0.0) + passed}
