"""Record a response or a failure in a log, and the end of the body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp

from .._failures.frames import came_from_aiohttp, went_out
from .._failures.safety import is_unprocessed
from .time_limits import TimeLimits, watch_body

if TYPE_CHECKING:
    from .._log.outcome import Outcome
    from .._log.request_log import RequestLog

_SWITCHING_PROTOCOLS = 101


def record_response(log: RequestLog, response: Any) -> None:
    """Record a response in a log, and the end of its body when it comes.

    Of what a function returned, only that it did. The stream is not wrapped: aiohttp
    releases the connection at the end of the body, also after a failure or an early
    exit, and then calls its callbacks.
    """
    if not log.request._brings_response:
        log._record_return()
        return
    if response is None:
        message = "response: None (expected: what the delegate returned)"
        raise TypeError(message)
    # Every joint of the chain comes here, so this is fast.
    if log._outcome.headers is response.headers or log._is_settled:
        return
    connection = response.connection
    content = response.content
    if connection is None or response.status == _SWITCHING_PROTOCOLS:
        # A user's response class need not have a stream.
        log._record_response(response, getattr(content, "total_bytes", 0))
        return
    log._record_response(response)
    outcome = log._outcome

    def end_body() -> None:
        # A decorator may send twice, and end the first response after the second.
        answered = log._with_outcome(outcome)
        if answered is not None:
            answered._end_body(content.total_bytes, _body_failure(content))

    connection.add_callback(end_body)


def record_streamed_success(log: RequestLog, response: aiohttp.ClientResponse) -> None:
    """Record a success of the short lane whose body has not ended, and watch that."""
    log._sent = True
    record_response(log, response)
    log._end_first_attempt()
    watch_body(log, TimeLimits.of_log(log), response)


def record_failed_send(log: RequestLog, cause: BaseException) -> None:
    """Record the failure of a request, and whether it was sent."""
    if came_from_aiohttp(cause):
        log._sent = log._sent or went_out(cause)
    else:
        log._sent = log._sent or not is_unprocessed(cause)
    log._record_failure(cause)


def record_cut(
    log: RequestLog, outcome: Outcome, length: int, cause: BaseException
) -> None:
    """Record that a body failed on this side, even if all of it had arrived."""
    outcome.body_ended, outcome.length = None, length
    log._fail_body(outcome, cause)


def _body_failure(content: aiohttp.StreamReader) -> BaseException | None:
    if content.is_eof():
        return None
    try:
        content._timer.assert_timeout()
    except TimeoutError as timeout:
        return timeout.with_traceback(None)
    cause = content.exception()
    # A release or a close before the end leaves this very class behind.
    return None if type(cause) is aiohttp.ClientConnectionError else cause
