"""Take a call through the chain: begin it, end it, and hand over its outcome."""

from __future__ import annotations

import time
import weakref
from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any

from .._bodies.new_response import CLOSES_REFUSED
from .._call.context import ClientRequestContext
from .._call.enclosing import begin_call
from .._call.options import current_options
from .._call.origin import judge_attempt
from .._call.time_limits import time_left
from .._errors import ResponseTimeoutError, UnprocessedRequestError
from .._failures.safety import mark_queued, was_queued
from .._log.attachment import attach
from .._log.capture import collecting
from .._log.late_log import attach_late
from .._log.upload import NO_BODY
from .._request.copied_arguments import (
    NO_CONTAINERS,
    PLAIN,
    usual_copies,
    with_copies,
)
from .._request.request import HttpRequest
from .aiohttp_transport import closed
from .deadline import response_timeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    from aiohttp import ClientSession
    from aiohttp.typedefs import StrOrURL

    from .._call.client import HttpClient
    from .._log.request_log import RequestLog
    from .._masking.mask import Mask


async def ordinary_call(
    session: ClientSession | None,
    client: HttpClient,
    mask: Mask,
    method: str,
    target: StrOrURL,
    options: dict[str, Any],
    ctx: ClientRequestContext | None = None,
    *,
    late: bool = False,
) -> aiohttp.ClientResponse:
    """Send a request through the chain that begins with *client*.

    Without a *ctx* it begins the call; if *late*, without a log, which is made when it
    is asked for.
    """
    if session is None:
        raise closed()
    refuse = options.get("raise_for_status")
    if refuse is None:
        refuse = session._raise_for_status
    if refuse:
        # The decorators are to see the status, and the body where they need it.
        options["raise_for_status"] = False
    begin = _begin_late if late else _begin
    ctx = ctx or begin(session, mask, method, target, options)
    ctx._session = session
    try:
        try:
            response = await client.execute(ctx, ctx.request)
        except UnprocessedRequestError as refused:
            _check_deadline(ctx, refused)
            raise
    except BaseException as cause:
        judge_attempt(ctx.log, cause)
        ctx.log._annotate(cause)
        if ctx._resources is not None:
            ctx._resources.close_responses()
        raise
    finally:
        resources, ctx._resources, ctx._session = ctx._resources, None, None
        if resources is not None and resources.bodies:
            await resources.close_bodies()
        if ctx._late is None:
            ctx.log._end_call()
    _attach(ctx, response)
    if refuse:
        await _refuse(response, refuse, ctx.log)
    return response


def _begin(
    session: ClientSession,
    mask: Mask,
    method: str,
    target: StrOrURL,
    options: dict[str, Any],
) -> ClientRequestContext:
    """Make the context of a call, with the options of the blocks around it."""
    request = HttpRequest.of_call(method, target, options, session._base_url)
    override = current_options()
    timeout = response_timeout(options, session, override)
    headers = session._default_headers.copy()
    ctx = ClientRequestContext(request, timeout, None, headers, mask)
    begin_call(ctx, override)
    return ctx


def _begin_late(
    session: ClientSession,
    mask: Mask,
    method: str,
    target: StrOrURL,
    options: dict[str, Any],
) -> ClientRequestContext:
    """Make the context of a call, without a log where that is a usual one."""
    is_plain = len(options) == 1 and "allow_redirects" in options
    copies, _ = PLAIN if is_plain else usual_copies(options)
    if copies is None or current_options() is not None or collecting():
        return _begin(session, mask, method, target, options)
    arguments = with_copies(options, copies)
    request = HttpRequest.of_arguments(
        method, target, options, arguments, session._base_url
    )
    loop = get_running_loop()
    sent = request.method, target, arguments, NO_CONTAINERS, session._base_url
    headers = session._default_headers.copy()
    begun = sent, headers, mask, loop, time.time(), loop.time()
    limits = response_timeout(options, session, None), None, False
    return ClientRequestContext._of(request, None, (begun, limits, NO_BODY))


def _attach(ctx: ClientRequestContext, response: aiohttp.ClientResponse) -> None:
    """Let :meth:`RequestLog.of` find the log of a call from its response."""
    late = ctx._late
    if late is None:
        attach(ctx.log, response)
        return
    begun, limits, upload = late
    if upload is not NO_BODY:
        # A decorator may have kept the request, with its body.
        method, target, arguments, copies, base_url = begun[0]
        arguments = {**arguments, "data": None, "json": None}
        sent = method, target, arguments, copies, base_url
        late = (sent, *begun[1:]), limits, upload
    attach_late(response, late, ctx._answered_at)
    # A decorator may have kept the context, which is not to keep the response.
    ctx._answer = weakref.ref(response)
    first_hop = response._history[0] if response._history else response
    ctx._answer_facts = (
        response.status,
        response.reason,
        response._headers,
        first_hop._request_info.headers,
        getattr(response.content, "total_bytes", 0),
    )


def _check_deadline(ctx: ClientRequestContext, refused: Exception) -> None:
    """Raise a :class:`ResponseTimeoutError` if the deadline passed in a queue."""
    if was_queued(refused) and time_left(ctx) <= 0:
        raise _timed_out(ctx) from refused


def _timed_out(ctx: ClientRequestContext) -> ResponseTimeoutError:
    seconds = ctx.log.response_timeout
    error = ResponseTimeoutError(f"the call had {seconds:.3f} s, and was in a queue")
    mark_queued(error)
    ctx.log._record_failure(error)
    return error


async def _refuse(
    response: aiohttp.ClientResponse,
    refuse: bool | Callable[[aiohttp.ClientResponse], Awaitable[None]],
    log: RequestLog,
) -> None:
    try:
        if callable(refuse):
            await refuse(response)
        else:
            response.raise_for_status()
    except BaseException as cause:
        # Before 3.14 aiohttp leaves the response open that the error has.
        if CLOSES_REFUSED or not _carries(cause, response):
            response.close()
        log._record_refusal(cause)
        log._annotate(cause)
        raise


def _carries(error: BaseException, response: aiohttp.ClientResponse) -> bool:
    carried = (*error.args, *vars(error).values())
    return any(each is response for each in carried)
