"""Send a request again whose connection of the pool was broken.

A server may close an idle connection at any time, and the next request on it is lost
through no fault of its own. aiohttp sends that again by itself, once, unseen, and on a
fresh connection too. A chain that retries switches that off and does it here: seen in
the log, on reused connections only, and below all decorators.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from .._bodies.request_body import is_spent
from .._call.time_limits import time_left
from .._clock import loop_time
from .._failures.failure import failure_of, judge
from .._failures.frames import Trace
from .._retry.idempotence import may_be_repeated
from .deadline import with_rest_of_timeout
from .middlewares import AnsweredHops, middlewares_of
from .request_classes import broken_connection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    from aiohttp import ClientSession

    from .._call.call import Call
    from .._call.record import Record
    from .._request.request import HttpRequest


MAX_RESENDS: Final = 3
"""How often a pass through the transport sends again, at most."""

_STALE: Final = "stale_connection"

_is_tracked: ContextVar[bool] = ContextVar("aioretry_smithy_tracked", default=False)


def request_to_resend(
    call: Call, record: Record, request: HttpRequest, cause: Exception
) -> HttpRequest | None:
    """Return the request to send again after a failure; None where that is final.

    Final is any failure but that of a connection which was used before, and any where
    time is up or the server may not get the request twice.
    """
    broken = broken_connection(cause)
    if broken is None or failure_of(cause).raised_by_caller:
        return None
    # Where nobody can know, the first of a call is taken for a reused one.
    is_first = all(each.delay_source != _STALE for each in call.sent)
    if broken.was_reused is False or (broken.was_reused is None and not is_first):
        return None
    if (
        not may_be_repeated(call, request)
        or is_tracked(request)
        or is_spent(call, request)
        or time_left(call, record) <= 0
    ):
        return None
    passed = loop_time() - (record.first_sent or 0.0)
    again = with_rest_of_timeout(call, request, passed)
    if again is None or not broken.hops:
        return again
    around = middlewares_of(again.arguments, broken.session)
    return again.replace(middlewares=(AnsweredHops(broken.hops), *around))


def is_tracked(request: HttpRequest) -> bool:
    """Say whether aiohttp tracks the upload, and has to send again by itself.

    Its tracker serves one call of aiohttp.
    """
    return request.arguments.get("upload_tracker") is not None


async def sending_tracked(
    record: Record,
    session: ClientSession,
    send: Callable[[], Awaitable[aiohttp.ClientResponse]],
) -> aiohttp.ClientResponse:
    """Send a request that aiohttp may send again, like without a chain."""
    session._retry_connection = _ONLY_TRACKED  # type: ignore[assignment]
    token = _is_tracked.set(True)
    try:
        return await send()
    except Exception as cause:
        # As long as it can be seen whether the first send went out.
        if Trace(cause).went_out():
            record.was_sent = True
            judge(cause).reached_server = True
        raise
    finally:
        _is_tracked.reset(token)


class _OnlyTracked:
    """Stands for aiohttp's setting: on for calls with a tracker, off for all others."""

    def __bool__(self) -> bool:
        return _is_tracked.get()


_ONLY_TRACKED: Final = _OnlyTracked()
