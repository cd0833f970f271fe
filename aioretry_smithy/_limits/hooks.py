"""Let requests wait for a place, and let the limit learn from how they end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import aiohttp

from .._call.connection_end import end_with
from .._call.hooks import PASS, WAIT, Hooks, Sign
from .._call.response_facts import connection_of
from .._clock import loop_time
from .._context.context import context_of
from .._failures.groups import peel
from .._failures.raised_answers import status_of_server
from .._failures.safety import is_of_server, is_timeout
from .errors import ConcurrencyLimitError
from .queued import note_queue, unsent

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .._request.request import HttpRequest
    from .concurrency_limit import ConcurrencyLimit

_OVERLOADED: Final = frozenset({429, 503})
_SERVER_ERROR = 500
_LOST = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError)
_NOT_THE_LOAD = (aiohttp.ClientConnectorDNSError, aiohttp.ClientSSLError)


class Place(Protocol):
    """The permit of a request in flight."""

    def learn(self, *, dropped: bool) -> None:
        """Report to the limit how the request was answered, before it is released."""

    def release(self) -> None:
        """Give it back, for the next request that waits; once."""


@dataclass(frozen=True, slots=True, eq=False)
class ConcurrencyHooks(Hooks):
    """Lets requests wait for a permit to be in flight.

    Args:
        limits: Finds the limit of a request.
        max_pending: Requests that may wait at once; None for any number.
        timeout: Longest wait in seconds; None for no such limit.
        is_of_endpoint: Whether each endpoint has a limit of its own.
    """

    limits: Any
    max_pending: int | None
    timeout: float | None
    is_of_endpoint: bool = False

    def enter(self, call: Call, scope: Scope, request: HttpRequest) -> Place | Sign:
        """Take a permit, if there is one."""
        limit: ConcurrencyLimit | None = self.limits.of(request)
        if limit is None:
            return PASS
        loop = call.loop
        if limit._places.loop is not loop:
            limit._places = limit._places.in_loop(loop)
        return limit._try_enter(loop.time()) or WAIT

    async def admit(self, call: Call, scope: Scope, request: HttpRequest) -> Place:
        """Wait for a permit.

        Raises:
            ConcurrencyLimitError: None came in time.
        """
        limit: ConcurrencyLimit = self.limits.of(request)
        started = loop_time()
        if self.max_pending is None or limit.pending < self.max_pending:
            longest = math.inf if self.timeout is None else self.timeout
            until = started + min(longest, call.remaining(scope.record))
            permit = await limit._wait(until)
            note_queue(call, started)
            if permit is not None:
                scope.record.first_sent = loop_time()
                return permit
        limit._refuse(context_of(call, scope))
        # A variable would keep the error alive, since the error keeps this frame.
        raise self._refusal(limit, loop_time() - started, request)

    def _refusal(
        self, limit: ConcurrencyLimit, waited: float, request: HttpRequest
    ) -> ConcurrencyLimitError:
        error = unsent(ConcurrencyLimitError(limit, waited, limit.pending))
        error.is_of_endpoint = self.is_of_endpoint and request.route is not None
        return error

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: Place,
        result: aiohttp.ClientResponse | Sign,
        cause: Exception | None,
    ) -> None:
        """Let the limit learn, and give the permit back when the body has ended."""
        if isinstance(result, Sign):
            self._drop(permit, cause)
            return
        _learn_from_status(permit, result.status)
        _release_after_body(permit, result)

    def cancel(
        self, call: Call, scope: Scope, permit: Place, cause: BaseException
    ) -> None:
        """Give the permit back."""
        self._drop(permit, cause)

    def _drop(self, permit: Place, cause: BaseException | None) -> None:
        status = status_of_server(cause)
        if status is not None:
            _learn_from_status(permit, status)
        elif cause is not None and was_dropped(cause):
            permit.learn(dropped=True)
        permit.release()


def _learn_from_status(permit: Place, status: int) -> None:
    """Let the limit learn from an answer, also one that was raised."""
    dropped = status in _OVERLOADED
    # Other errors of the server say nothing of its load.
    if dropped or status < _SERVER_ERROR:
        permit.learn(dropped=dropped)


def was_dropped(cause: BaseException) -> bool:
    """Say whether the server, or its network, dropped a request for its load.

    By a timeout, or a connection that was refused, cut or reset. Not by a wait in a
    queue of this side, an unknown name, a bad certificate or a mistake of the caller's.
    """
    cause = peel(cause)
    if not is_of_server(cause):
        return False
    is_lost = isinstance(cause, _LOST) and not isinstance(cause, _NOT_THE_LOAD)
    return is_lost or is_timeout(cause)


def _release_after_body(permit: Place, response: aiohttp.ClientResponse) -> None:
    """Give a permit back when the body has ended."""
    # The body of a mock never ends.
    connection = connection_of(response)
    if connection is None or not issubclass(type(response), aiohttp.ClientResponse):
        permit.release()
    else:
        end_with(connection, permit.release)
