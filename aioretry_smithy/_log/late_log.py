"""Make the log of a call of the short lane, which most programs never look at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

from .._request.copied_arguments import with_copies
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
    from .._request.copied_arguments import Containers
    from .upload import Upload

# Plain tuples: every call makes them, and anything else takes longer to make.

Sent: TypeAlias = "tuple[str, StrOrURL, dict[str, Any], Containers, URL | None]"
"""The method, the target, the arguments, copies of the containers among them, and the
session's base URL."""

Begun: TypeAlias = (
    "tuple[Sent, Mapping[str, str], Mask, asyncio.AbstractEventLoop, float, float]"
)
"""What was sent, a copy of the session's headers, the mask, the event loop, and the
wall clock and the loop's time at the start."""

ShownLimits: TypeAlias = "tuple[float | None, float | None, bool]"
"""The seconds for the call and for an attempt, and whether attempts have logs."""

LateLog: TypeAlias = "tuple[Begun, ShownLimits, Upload]"
"""How a call began, its limits, and its upload: enough to make its log."""


def log_of_call(late: LateLog, request: HttpRequest | None = None) -> RequestLog:
    """Make the log of a call that is under way."""
    begun, (timeout, own, retries), upload = late
    sent, headers, mask, loop, wall_clock, started = begun
    if request is None:
        request = request_of(sent)
    log = RequestLog(request.without_body(), loop, timeout, None, headers, mask)
    shared = log._call
    shared.wall_clock = wall_clock
    shared.started = log.started = started
    shared.deadline = None if timeout is None else started + timeout
    log._deadline = None if own is None else started + own
    log._upload = upload
    log._children = UNMADE if retries else NO_CHILDREN
    return log


def request_of(sent: Sent) -> HttpRequest:
    """Make the request of a call."""
    method, target, arguments, copies, base_url = sent
    arguments = with_copies(arguments, copies)
    return HttpRequest.of_arguments(method, target, arguments, arguments, base_url)


AnswerFacts: TypeAlias = (
    "tuple[int, str | None, Mapping[str, str], Mapping[str, str], int]"
)
"""What a log keeps of a success: its status, reason and headers, the headers that were
sent, and the length of the body."""


def record_success_of(log: RequestLog, facts: AnswerFacts, ended: float) -> None:
    """Record a response that is gone."""
    status, reason, headers, sent_headers, length = facts
    response: Any = SimpleNamespace(
        status=status,
        reason=reason,
        headers=headers,
        history=(),
        request_info=SimpleNamespace(headers=sent_headers),
        content=SimpleNamespace(total_bytes=length),
    )
    record_success(log, response, ended)


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


def attach_late(response: aiohttp.ClientResponse, late: LateLog, ended: float) -> None:
    """Let :meth:`RequestLog.of` make the log of a call that succeeded."""
    # LOG_KEY, written out: setattr() takes twice as long.
    response._aioretry_smithy_log = _log_of_success, late, ended  # type: ignore[attr-defined]


def _log_of_success(
    response: aiohttp.ClientResponse, late: LateLog, ended: float
) -> RequestLog:
    log = log_of_call(late)
    record_success(log, response, ended)
    log._end_call()
    return log
