"""Say what a client does to a call that succeeds at once, for the short lane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import aiohttp

    from .._log.request_log import RequestLog


class LaneStep(NamedTuple):
    """The part of a client in a call that succeeds at once.

    A client that can say this has a method ``_lane_step(is_inside)``, which is told
    whether a retrying client stands further out.
    """

    before: Callable[[str, str], Any] | None = None
    """Takes the host key (empty where it is not known yet) and the method of a call.

    Returns a permit, or None where the call has to take the ordinary lane.
    """

    after: Callable[[Any, float], None] | None = None
    """Notes a success; takes the permit, and when the response came."""


class FirstAttempt:
    """An attempt that the short lane has made: the ordinary lane goes on from it.

    Args:
        permits: What the clients gave before it, by client.
        response: The response, if one came.
        cause: The failure, if none came.
    """

    __slots__ = ("_cause", "_response", "log", "permits")

    log: RequestLog | None
    """The log of the attempt; None where nothing retries."""

    def __init__(
        self,
        permits: Mapping[Any, Any] | None,
        response: aiohttp.ClientResponse | None = None,
        cause: BaseException | None = None,
    ) -> None:
        self.permits = permits or {}
        self.log = None
        self._response = response
        self._cause = cause

    async def outcome(self) -> Any:
        """Return the response, or raise the failure, and forget it."""
        response, cause = self._response, self._cause
        self._response = self._cause = None
        if cause is None:
            return response
        try:
            raise cause
        finally:
            # It has this frame, which must not have it.
            del cause
