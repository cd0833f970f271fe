"""Tell where a failure came from: the caller's own objects, or the transport.

Asked on failure only, since to trace every request would cost all of them: the frames
that an exception came through tell, and what aiohttp keeps in their variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._errors import RefusedRequestError, ResponseTimeoutError
from .._failures.safety import (
    is_timeout,
    is_unprocessed,
    mark_own,
    mark_queued,
    mark_seen,
)

if TYPE_CHECKING:
    from .._log.request_log import RequestLog

_REQUEST = ("aiohttp.client", "_request")
_SENDING = ("aiohttp.client", "_connect_and_send_request")
_TIMER = ("aiohttp.helpers", "__exit__")
_POOL = ("aiohttp.connector", "_wait_for_available_connection")
_WRITING = ("aiohttp.client_reqrep", "write_bytes")
# What hands on the chunks of a body counts as the body, too.
_BODY = {
    "aiohttp.multipart",
    "aiohttp.payload",
    "aioretry_smithy._bodies.request_body",
    "aioretry_smithy._session.uploads",
}
# From our own error to the cancellation by which aiohttp's timer ends a wait.
_LINKS = 4
_WIRE = {"aiohttp.base_protocol", "aiohttp.http_writer"}


def judge_origin(cause: BaseException, log: RequestLog) -> None:
    """Note whose doing a failure is, and whether the server has seen the request.

    Args:
        cause: What sending the request raised.
        log: The log of the attempt, which knows how an earlier send ended.
    """
    if was_sent_before(log, cause):
        mark_seen(cause)
    if is_timeout(cause) and waited_in_pool(cause):
        mark_queued(cause)
    # Ours names the limit that passed, and stands around the failure itself.
    raised = cause.__cause__ if isinstance(cause, ResponseTimeoutError) else cause
    frames, variables = _frames_of(raised)
    if _REQUEST not in frames:
        # A mock's, or ours: nothing came as far as aiohttp.
        return
    inside = frames[frames.index(_REQUEST) + 1 :]
    request = variables.get("req")
    # aiohttp keeps the answered hops; a variable that has another name some day is
    # taken for a redirect, which is the safe side.
    if variables.get("history", True) or _was_answered(request, inside):
        mark_seen(cause)
    is_early = request is None and inside[:1] != [_TIMER]
    if isinstance(cause, Exception) and (is_early or _comes_from_body(cause)):
        mark_own(cause)


def waited_in_pool(cause: BaseException) -> bool:
    """Say whether a request was cut while it waited for a place in the pool.

    A method that has another name some day is not found, and the wait is taken for one
    for the server.
    """
    link: BaseException | None = cause
    for _ in range(_LINKS):
        frames, _variables = _frames_of(link)
        if _POOL in frames:
            return True
        # Not the context: that may be the failure of an earlier call.
        link = None if link is None else link.__cause__
    return False


def was_sent_before(log: RequestLog, cause: BaseException) -> bool:
    """Say whether the server may have seen a request that *log* tells of.

    Args:
        log: The log of one attempt.
        cause: The failure to judge, which the log may have recorded already.
    """
    earlier = log.response_cause
    if earlier is None:
        return log.response_status is not None
    is_other = earlier is not cause and not isinstance(earlier, RefusedRequestError)
    return is_other and not is_unprocessed(earlier)


def _was_answered(request: Any, inside: list[tuple[str, str]]) -> bool:
    # A middleware that sends again uses the same request, which keeps what came of it.
    return _SENDING in inside and getattr(request, "response", None) is not None


def _comes_from_body(cause: BaseException) -> bool:
    for link in (cause, cause.__cause__):
        frames, _ = _frames_of(link)
        if _WRITING in frames:
            inside = frames[frames.index(_WRITING) + 1 :]
            # Whoever was called by the payloads: the body, or the wire.
            called = [module for module, _ in inside if module not in _BODY]
            return bool(inside) and called[:1] not in ([wire] for wire in _WIRE)
    return False


def _frames_of(
    cause: BaseException | None,
) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """Return modules and functions, and the variables of aiohttp's ``_request``."""
    frames: list[tuple[str, str]] = []
    variables: dict[str, Any] = {}
    traceback = None if cause is None else cause.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        frames.append((frame.f_globals.get("__name__", ""), frame.f_code.co_name))
        if frames[-1] == _REQUEST and not variables:
            variables = dict(frame.f_locals)
        traceback = traceback.tb_next
    return frames, variables
