"""Find the time that a call of a session may take, and tell aiohttp of the rest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from aiohttp import ClientSession, ClientTimeout
from aiohttp.helpers import sentinel

from .._context.options import UNSET, Options
from .._errors import AttemptTimeoutError, ResponseTimeoutError

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.record import Record
    from .._request.arguments import Arguments
    from .._request.request import HttpRequest


# A limit this close to aiohttp's own needs no timer of ours.
CLOSE_ENOUGH: Final = 0.010
"""Seconds by which aiohttp's own timer may be late or early."""

_AT_ONCE: Final = 0.001
"""Seconds of an attempt that may pass before its request is sent, and do not count."""

_NUMBER = (int, float)
_KEEPS_LIMIT = "_aioretry_smithy_keeps_limit"
_NUMBER_OR_NONE = (*_NUMBER, type(None))


def response_timeout(
    options: Arguments, session: ClientSession, override: Options | None
) -> float | None:
    """Return the seconds that a call may take, or None for no limit."""
    if override is not None and override.response_timeout is not UNSET:
        return override.response_timeout
    total = session._timeout.total
    if "timeout" in options:
        timeout = options["timeout"]
        if not isinstance(timeout, ClientTimeout):
            # The caller may have passed on aiohttp's default value.
            total = total if timeout is sentinel else timeout
        elif timeout.total is not None or _KEEPS_LIMIT not in vars(session):
            total = timeout.total
    return limit_of(total)


def keep_session_limit(session: ClientSession) -> None:
    """Keep the session's limit even if a request's ``ClientTimeout`` has no total.

    Without a chain such a ``ClientTimeout`` lifts the limit of the session. So it does
    with a chain, unless a builder has set the limit.
    """
    vars(session)[_KEEPS_LIMIT] = True


def limit_of(total: object) -> float | None:
    """Return a ``total`` of aiohttp's as a limit, or None if it means no limit."""
    # aiohttp itself refuses a value that is not a number.
    return total if isinstance(total, _NUMBER) and total > 0 else None


def means_no_limit(total: object) -> bool:
    """Say whether a ``total`` of aiohttp's is a number that means no limit."""
    return isinstance(total, _NUMBER) and total <= 0


class AttemptTimeouts:
    """Makes the timeouts that aiohttp is given for attempts; keeps the last one.

    Most attempts of a session have the same.
    """

    def __init__(self) -> None:
        self._last: tuple[object, float, Arguments | None] = None, 0.0, None

    def of(
        self,
        call: Call,
        record: Record,
        request: HttpRequest,
        session: ClientSession,
        whole: float | None,
    ) -> Arguments | None:
        """Return the argument that gives aiohttp a timeout; None if its own is right.

        Args:
            call: The call.
            record: That of the attempt.
            request: What is sent.
            session: The session.
            whole: Seconds that the whole attempt may take; None for no limit.

        Raises:
            ResponseTimeoutError: There is no time left.
        """
        arguments = request.arguments
        is_as_called = arguments is call.request.arguments
        if (
            is_as_called
            and call.aiohttp_keeps_time
            and (record.deadline is None or record is call)
            and call.loop.time() - call.started <= CLOSE_ENOUGH
        ):
            return None
        timeout = session._timeout
        if "timeout" in arguments:
            timeout = _as_timeout(arguments["timeout"], session)
            if not isinstance(timeout.total, _NUMBER_OR_NONE):
                return None  # aiohttp reports the caller's value
        deadline = call.deadline_of(record)
        limit = math.inf if deadline is None else deadline - call.loop.time()
        if whole is not None and limit <= whole <= limit + _AT_ONCE:
            limit = whole
        if not is_as_called and _is_replaced(call, request):
            limit = min(limit, limit_of(timeout.total) or math.inf)
            if record.first_sent is None:
                record.first_sent = call.loop.time()
        if limit <= 0.0:
            raise too_late(call)
        source, known, last = self._last
        if source is not timeout or known != limit:
            last = _timeout_of(timeout, limit)
            self._last = timeout, limit, last
        return last


def _as_timeout(given: Any, session: ClientSession) -> ClientTimeout:
    """Return the timeout of a request, which may be aiohttp's mark for none."""
    if given is sentinel:
        return session._timeout
    return given if isinstance(given, ClientTimeout) else ClientTimeout(total=given)


def with_rest_of_timeout(
    call: Call, request: HttpRequest, passed: float
) -> HttpRequest | None:
    """Return a request with what is left of its own timeout, None if that is over.

    Its own is one that a decorator has given it; other limits are kept elsewhere.
    """
    timeout = request.arguments.get("timeout")
    if timeout is None or not _is_replaced(call, request):
        return request
    if not isinstance(timeout, ClientTimeout):
        timeout = ClientTimeout(total=timeout)
    limit = limit_of(timeout.total)
    if limit is None:
        return request
    if passed >= limit:
        return None
    return request.replace(timeout=with_total(timeout, limit - passed))


def _is_replaced(call: Call, request: HttpRequest) -> bool:
    """Say whether a decorator has replaced the timeout."""
    own, as_called = request.arguments, call.request.arguments
    return own is not as_called and (
        own.get("timeout", sentinel) is not as_called.get("timeout", sentinel)
    )


def silence_limit(request: HttpRequest, session: ClientSession) -> float:
    """Return the seconds that a server may be silent; ``inf`` for no limit."""
    timeout = _as_timeout(request.arguments.get("timeout", sentinel), session)
    return limit_of(timeout.sock_read) or math.inf


def _timeout_of(timeout: ClientTimeout, limit: float) -> Arguments | None:
    own = limit_of(timeout.total) or math.inf
    if limit == own or 0 <= own - limit <= CLOSE_ENOUGH:
        return None
    return {"timeout": with_total(timeout, None if limit == math.inf else limit)}


def with_total(timeout: ClientTimeout, seconds: float | None) -> ClientTimeout:
    """Return a timeout with an exact ``total``, and the same other limits."""
    return ClientTimeout(
        total=seconds,
        connect=timeout.connect,
        sock_read=timeout.sock_read,
        sock_connect=timeout.sock_connect,
        ceil_threshold=math.inf,
    )


def too_late(call: Call) -> ResponseTimeoutError:
    """Make the error for a request that came after the deadline."""
    if call.time_of(call) <= 0:
        return ResponseTimeoutError("no time left before the request was sent")
    return AttemptTimeoutError("no time left for this attempt before it was sent")
