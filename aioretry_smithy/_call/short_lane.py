"""Describe the part of a client in the short lane, and an attempt made there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import aiohttp

    from .._log.request_log import RequestLog
    from .._log.upload import SerializedJson


class LaneStep(NamedTuple):
    """The part of a client in a call that succeeds at once.

    A client returns it from ``_lane_step()``, or None where it has to see every call.
    """

    before: Callable[[str, str, float], Any] | None = None
    """Asks for a permit, before a request is sent.

    Takes the host key (empty where it is not known yet), the method of a call, and the
    time of the event loop. Returns a permit, or None where the call has to take the
    ordinary lane.
    """

    after: Callable[[Any, float, Any], None] | None = None
    """Notes a success; takes the permit, when the response came, and the response."""

    undo: Callable[[Any], None] | None = None
    """Takes back a permit that is not used, because another client gave none."""


class FirstAttempt:
    """An attempt that the short lane has made: the ordinary lane goes on from it."""

    __slots__ = ("_cause", "_response", "json", "log", "permits")

    json: list[SerializedJson] | None
    """The JSON that it sent, if it had any."""

    log: RequestLog | None
    """The log of the attempt; None where nothing retries."""

    permits: Mapping[Any, Any]
    """The permits that clients gave before it, by client."""

    def __init__(
        self,
        response: aiohttp.ClientResponse | None = None,
        cause: BaseException | None = None,
        json: list[SerializedJson] | None = None,
    ) -> None:
        self.json = json
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
