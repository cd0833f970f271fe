"""Record in a log what came back, and how its body ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

from .._failures.frames import came_from_aiohttp, went_out
from .._failures.safety import is_unprocessed
from .time_limits import TimeLimits, watch_body

if TYPE_CHECKING:
    from .._log.request_log import RequestLog

_SWITCHING_PROTOCOLS = 101


def record_response(log: RequestLog, response: aiohttp.ClientResponse | None) -> None:
    """Record a response in a log, and the end of its body when it comes.

    The stream is not wrapped: aiohttp gives the connection back at the end of the body,
    after a failure and after an early exit alike, and tells whoever asks.
    """
    if response is None:
        message = "response: None (expected: what the delegate returned)"
        raise TypeError(message)
    # Each joint on the way comes here, so this is as direct as can be.
    if log._outcome.headers is response.headers or log._is_settled:
        return
    connection = response.connection
    content = response.content
    if connection is None or response.status == _SWITCHING_PROTOCOLS:
        # A response class of somebody's own need not have a stream.
        log._record_response(response, getattr(content, "total_bytes", 0))
        return
    log._record_response(response)
    outcome = log._outcome

    def end_body() -> None:
        # A decorator that asked twice may end the first answer after the second.
        if log._outcome is outcome:
            log._end_body(content.total_bytes, _body_failure(content))

    connection.add_callback(end_body)


def record_streamed_success(log: RequestLog, response: aiohttp.ClientResponse) -> None:
    """Record a response in the log of a call without a context, and watch its body."""
    log._sent = True
    record_response(log, response)
    log._end_first_attempt()
    watch_body(log, TimeLimits.of_log(log), response)


def record_failed_send(log: RequestLog, cause: BaseException) -> None:
    """Record what sending a request failed with, and whether it had gone out."""
    if came_from_aiohttp(cause):
        log._sent = log._sent or went_out(cause)
    else:
        log._sent = log._sent or not is_unprocessed(cause)
    log._record_failure(cause)


def _body_failure(content: aiohttp.StreamReader) -> BaseException | None:
    if content.is_eof():
        return None
    try:
        content._timer.assert_timeout()
    except TimeoutError as timeout:
        return timeout.with_traceback(None)
    cause = content.exception()
    # This very class is what a release or a close before the end leaves behind.
    return None if type(cause) is aiohttp.ClientConnectionError else cause
