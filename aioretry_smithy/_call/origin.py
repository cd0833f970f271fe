"""Tell failures of the caller's own objects from failures of the transport.

Tracing every request would cost all of them. So this looks at failures only: at the
frames of the exception, and at aiohttp's variables in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import RefusedRequestError, ResponseTimeoutError
from .._failures.blame import broken_connection_is_made, is_of_user_code
from .._failures.frames import REQUEST, frames_of, was_answered
from .._failures.marks import (
    mark_connection_failed,
    mark_of_no_server,
    mark_raised_by_caller,
    mark_reached_server,
)
from .._failures.pool_queue import mark_in_pool
from .._failures.safety import is_timeout, is_unprocessed
from .recorder import cause_of

if TYPE_CHECKING:
    from .call import Call
    from .record import Record

_TIMER = ("aiohttp.helpers", "__exit__")
_POOL = ("aiohttp.connector", "_wait_for_available_connection")
_WRITING = ("aiohttp.client_reqrep", "write_bytes")
# Modules that pass on the chunks of a body count as the body, too.
_BODY = {
    "aiohttp.multipart",
    "aiohttp.payload",
    "aioretry_smithy._bodies.async_file",
    "aioretry_smithy._bodies.replayable_payload",
    "aioretry_smithy._bodies.sent_content",
    "aioretry_smithy._session.uploads",
}
_WIRE = {"aiohttp.base_protocol", "aiohttp.http_writer"}


def mark_failure_source(cause: BaseException, record: Record) -> None:
    """Note which side a failure came from, and whether the server saw the request."""
    if record.was_sent:
        mark_reached_server(cause)
    if is_timeout(cause) and waited_in_pool(cause):
        mark_in_pool(cause)
    # Our error names the limit that passed; its cause is the failure itself.
    raised = cause.__cause__ if isinstance(cause, ResponseTimeoutError) else cause
    frames = [*frames_of(raised, 1)]
    places = [place for place, _ in frames]
    if REQUEST not in places:
        # Raised by a mock or by us, before aiohttp.
        return
    index = places.index(REQUEST)
    inside, variables = places[index + 1 :], frames[index][1].f_locals
    request = variables.get("req")
    # aiohttp keeps the answered hops in "history". If that is renamed some day, a
    # redirect is assumed, which is the safe side.
    if variables.get("history", True) or was_answered(request):
        mark_reached_server(cause)
    is_early = request is None and inside[:1] != [_TIMER]
    if not isinstance(cause, Exception):
        return
    if is_early or _comes_from_body(cause):
        mark_raised_by_caller(cause)
        return
    if is_of_user_code(cause, frames[index + 1 :]):
        mark_of_no_server(cause)
    is_made = broken_connection_is_made(cause)
    if is_made is not None:
        mark_connection_failed(cause, is_made=is_made)


def waited_in_pool(cause: BaseException) -> bool:
    """Say whether a request was cut while it waited for a place in the pool.

    If aiohttp renames its method some day, the wait counts as a wait for the server.
    """
    return any(place == _POOL for place, _ in frames_of(cause))


def judge_attempt(call: Call, record: Record, cause: BaseException) -> None:
    """Note whether a server has seen something of an attempt that failed.

    Whoever refused the rest: a decorator of the caller's own may have sent the request
    before, or have made attempts inside this one; a function may have made calls.
    """
    if is_unprocessed(cause) and _was_sent(call, record, cause):
        mark_reached_server(cause)


def _was_sent(call: Call, record: Record, cause: BaseException) -> bool:
    number = record.number
    if number is None and call.sent:
        # Each attempt was judged by itself.
        return False
    inner = call.sent_after(number)
    if call.brings_response:
        was_sent = record.was_sent or any(each.was_sent for each in inner)
        return was_sent or call.dropped.may_be_sent_after(number or 0)
    # That the function ran says nothing: it may be what refused.
    inside = record.calls_inside
    # Nobody knows of the calls that were not kept.
    return any(_ran_before(each, cause) for each in inner) or (
        inside is not None
        and (inside.dropped > 0 or any(each.was_sent_at_all for each in inside.kept))
    )


def _ran_before(record: Record, cause: BaseException) -> bool:
    earlier = cause_of(record)
    if earlier is None or earlier is cause:
        return False
    return not (isinstance(earlier, RefusedRequestError) or is_unprocessed(earlier))


def _comes_from_body(cause: BaseException) -> bool:
    for link in (cause, cause.__cause__):
        places = [place for place, _ in frames_of(link, 1)]
        if _WRITING in places:
            inside = places[places.index(_WRITING) + 1 :]
            # The first module that the payloads called: the user's body, or the wire.
            called = [module for module, _ in inside if module not in _BODY]
            return bool(inside) and called[:1] not in ([wire] for wire in _WIRE)
    return False
