"""Judge the failures of requests: by the caller or the server, sent or not.

Tracing every request would cost all of them. So this looks at failures only: at the
frames of the exception, and at aiohttp's variables in them.
"""

from __future__ import annotations

from itertools import dropwhile
from typing import TYPE_CHECKING

import aiohttp

from .._failures.failure import Failure, failure_of, judge, note_wait_in_pool
from .._failures.frames import (
    REQUEST,
    Trace,
    broken_connection_is_made,
    is_of_user_code,
    was_answered,
)
from .recorder import cause_of

if TYPE_CHECKING:
    from .call import Call, Context
    from .record import Record


_TIMER = ("aiohttp.helpers", "__exit__")
_POOL = ("aiohttp.connector", "_wait_for_available_connection")
_TUNNEL = ("aiohttp.connector", "_create_proxy_connection")
_TLS = ("aiohttp.connector", "_start_tls_connection")
_WRITING = ("aiohttp.client_reqrep", "write_bytes")
# Modules that pass on the chunks of a body count as the body, too.
_BODY = {
    "aiohttp.multipart",
    "aiohttp.payload",
    "aioretry_smithy._bodies.replayable_payload",
    "aioretry_smithy._session.request_classes",
}
_WIRE = {"aiohttp.base_protocol", "aiohttp.http_writer"}


def judge_request(cause: BaseException, record: Record) -> None:
    """Judge which side a failure came from, and whether a server saw the request."""
    failure, trace = judge(cause), Trace(cause)
    failure.reached_server |= record.was_sent
    # If aiohttp renames its method some day, the wait counts as one for the server.
    if failure.kind.is_timeout and trace.has(_POOL):
        note_wait_in_pool(cause)
    _judge_side(failure, cause, trace)
    if not record.was_sent:
        from_aiohttp = trace.has(REQUEST)
        was_sent = trace.went_out() if from_aiohttp else not failure.is_unprocessed
        record.was_sent = was_sent


def _judge_side(failure: Failure, cause: BaseException, trace: Trace) -> None:
    """Judge which side a failure came from, by what aiohttp had begun to do."""
    frames = [*dropwhile(lambda each: each[0] != REQUEST, trace.links[0])]
    if not frames:
        # Raised by a mock or by us, before aiohttp.
        return
    (_, frame), *inside = frames
    request = frame.f_locals.get("req")
    # aiohttp keeps the answered hops in "history". If that is renamed some day, a
    # redirect is assumed, which is the safe side.
    if frame.f_locals.get("history", True) or was_answered(request):
        failure.reached_server = True
    if not isinstance(cause, Exception):
        return
    is_early = request is None and [place for place, _ in inside[:1]] != [_TIMER]
    if is_early or _comes_from_body(trace):
        failure.raised_by_caller = True
    else:
        failure.of_no_server |= is_of_user_code(cause, inside)
        failure.connection_made = broken_connection_is_made(cause)
        if isinstance(cause, aiohttp.ClientError | OSError):
            _judge_connecting(failure, trace)


def _judge_connecting(failure: Failure, trace: Trace) -> None:
    """Note if there was no connection yet, to the server or to a proxy before it."""
    places = [place for place, _ in trace.connecting()]
    if places:
        failure.connection_made = False
        failure.broke_at_proxy = _TUNNEL in places and _TLS not in places


def judge_attempt(ctx: Context, cause: BaseException) -> None:
    """Note whether a server has seen something of an attempt that failed.

    Whoever refused the rest: a decorator of the caller's own may have sent the request
    before, or have made attempts inside this one; a function may have made calls.
    """
    failure = judge(cause)
    if failure.is_unprocessed and _was_sent(ctx.call, ctx.record, cause):
        failure.reached_server = True


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
    failure = failure_of(earlier)
    return not (failure.kind.is_refusal or failure.is_unprocessed)


def _comes_from_body(trace: Trace) -> bool:
    for link in trace.links[:2]:
        places = [place for place, _ in link]
        if _WRITING in places:
            inside = places[places.index(_WRITING) + 1 :]
            # The first module that the payloads called: the user's body, or the wire.
            called = [module for module, _ in inside if module not in _BODY]
            return bool(inside) and called[:1] not in ([wire] for wire in _WIRE)
    return False
