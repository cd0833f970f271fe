"""Make the log of a call of the short lane, which most programs never look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from .._request.request import HttpRequest
from .outcome import Outcome
from .record import NO_CHILDREN, UNMADE
from .request_log import RequestLog

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    import aiohttp
    from aiohttp.typedefs import StrOrURL
    from yarl import URL

    from .._masking.mask import Mask
    from .upload import Upload

# Plain tuples: every call makes one of each, and anything else takes longer to make.

CallFacts: TypeAlias = (
    "tuple[str, StrOrURL, dict[str, Any], URL | None, Mapping[str, str], Mask, bool,"
    " float | None, float | None, asyncio.AbstractEventLoop, float, float, Upload]"
)
"""The method, the target, copies of the arguments, the session's base URL and headers,
the mask, whether attempts have logs, the seconds for the call and for an attempt, the
event loop, wall clock and time at the start, and what is sent of the body."""


def log_of_call(call: CallFacts, request: HttpRequest | None = None) -> RequestLog:
    """Make the log of a call that is under way."""
    method, target, arguments, base_url, headers, mask = call[:6]
    retries, timeout, own, loop, wall_clock, started, upload = call[6:]
    if request is None:
        request = HttpRequest.of_arguments(
            method, target, arguments, arguments, base_url
        )
    log = RequestLog(request.without_body(), loop, timeout, None, headers, mask)
    shared = log._call
    shared.wall_clock, shared.started, log.started = wall_clock, started, started
    shared.deadline = None if timeout is None else started + timeout
    log._deadline = None if own is None else started + own
    log._upload = upload
    log._children = UNMADE if retries else NO_CHILDREN
    return log


def forget_body(call: CallFacts) -> None:
    """Keep the body no longer than the call, which is over."""
    arguments, upload = call[2], call[-1]
    arguments["data"] = arguments["json"] = None
    if upload.json:
        upload.json = ()


def record_success(
    log: RequestLog, response: aiohttp.ClientResponse, ended: float
) -> None:
    """Record a response whose body came with its headers, for its attempt too."""
    length = getattr(response.content, "total_bytes", 0)
    log._outcome = Outcome(ended, response, length)
    history = response.history
    first_hop = history[0] if history else response
    log._sent_headers = first_hop.request_info.headers
    log._sent = True
    log._end_first_attempt()
    if log._call.waiters:
        log._call.wake()


def log_of_success(
    response: aiohttp.ClientResponse, call: CallFacts, ended: float
) -> RequestLog:
    """Make the log of a call that is over."""
    log = log_of_call(call)
    record_success(log, response, ended)
    log._end_call()
    return log
