"""The permits that attempts hold of a limit, released with a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import aiohttp

from .._call.outcome import connection_of, end_with
from .._failures.blame import is_cut_body
from .._failures.failure import failure_of, peel

if TYPE_CHECKING:
    from .._call.outcome import Result
    from .._context.holdings import Holdings


_OVERLOADED: Final = frozenset({429, 503})
_SERVER_ERROR = 500
_LOST = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError)
_NOT_THE_LOAD = (aiohttp.ClientConnectorDNSError, aiohttp.ClientSSLError)


class Place(Protocol):
    """The permit of a request in flight."""

    def learn(self, *, dropped: bool) -> None:
        """Report to the limit how the request was answered, before it is released."""

    def release(self) -> None:
        """Release the permit to the next waiting request; further calls do nothing."""


def give_back_after_body(place: Place, response: Result) -> None:
    """Let the limit learn from an answer; give the place back when its body has ended.

    Raises:
        Exception: It is no answer.
    """
    _learn_from_status(place, response.status)
    connection = connection_of(response)
    # The body of a mock never ends.
    if connection is None or not issubclass(type(response), aiohttp.ClientResponse):
        place.release()
    else:
        end_with(connection, place.release)


def give_back(place: Place, cause: BaseException | None) -> None:
    """Give a place back; let the limit learn from the failure of its server, if any."""
    try:
        status = failure_of(cause).status_of_server
        if status is not None:
            _learn_from_status(place, status)
        elif cause is not None and was_dropped(cause):
            place.learn(dropped=True)
    finally:
        place.release()


def was_dropped(cause: BaseException) -> bool:
    """Say whether the server, or its network, dropped a request for its load.

    By a timeout, or a connection that was refused, cut or reset, also while the body
    came. Not by a wait in a queue of this side, an unknown name, a bad certificate or a
    mistake of the caller's.
    """
    failure, cause = failure_of(cause), peel(cause)
    is_lost = isinstance(cause, _LOST) and not isinstance(cause, _NOT_THE_LOAD)
    is_lost = is_lost or is_cut_body(cause)
    return failure.is_of_server and (is_lost or failure.kind.is_timeout)


def _learn_from_status(place: Place, status: int) -> None:
    """Adapt the limit to the status of an answer, raised or returned."""
    dropped = status in _OVERLOADED
    # Other errors of the server say nothing of its load.
    if dropped or status < _SERVER_ERROR:
        place.learn(dropped=dropped)


class HeldPlace:
    """A place that the calls inside its attempt need not ask for again.

    Args:
        place: The place.
        holdings: What the attempt holds.
        limit: Gave the place.
    """

    __slots__ = ("_holdings", "_limit", "_place")

    def __init__(self, place: Place, holdings: Holdings, limit: object) -> None:
        self._place = place
        self._holdings: Holdings | None = holdings
        self._limit = limit
        holdings.add(limit)

    def learn(self, *, dropped: bool) -> None:
        """Report to the limit how the request was answered, before it is released."""
        self._place.learn(dropped=dropped)

    def release(self) -> None:
        """Release the permit to the next waiting request; further calls do nothing."""
        holdings, self._holdings = self._holdings, None
        if holdings is not None:
            holdings.remove(self._limit)
            self._place.release()
