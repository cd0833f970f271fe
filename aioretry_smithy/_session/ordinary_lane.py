"""Take a call through the chain: begin it, end it, and hand over its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._bodies.new_response import CLOSES_REFUSED
from .._call.context import ClientRequestContext
from .._call.options import current_options
from .._log.attachment import attach
from .._log.capture import collecting
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
) -> aiohttp.ClientResponse:
    """Send a request through the chain that begins with *client*.

    Args:
        session: The session, or None where it is gone.
        client: The outermost client.
        mask: Hides secrets in the log.
        method: The method, in any case.
        target: The URL as it was given.
        options: The other arguments of the request.
        ctx: The context of a call that has begun already.
    """
    if session is None:
        raise closed()
    refuse = options.get("raise_for_status")
    if refuse is None:
        refuse = session._raise_for_status
    if refuse:
        # The decorators are to see the status, and the body where they need it.
        options["raise_for_status"] = False
    if ctx is None:
        request = HttpRequest.of_call(method, target, options, session._base_url)
        ctx = _begin(session, mask, request, options)
    log = ctx.log
    try:
        response = await client.execute(ctx, ctx.request)
    except BaseException as cause:
        log._annotate(cause)
        if ctx._resources is not None:
            ctx._resources.close_responses()
        raise
    finally:
        resources, ctx._resources = ctx._resources, None
        if resources is not None and resources.bodies:
            await resources.close_bodies()
        log._end_call()
    attach(log, response)
    if refuse:
        await _refuse(response, refuse, log)
    return response


def _begin(
    session: ClientSession, mask: Mask, request: HttpRequest, options: dict[str, Any]
) -> ClientRequestContext:
    """Make the context of a call, with what the blocks around it ask for."""
    override = current_options()
    timeout = response_timeout(options, session, override)
    ctx = ClientRequestContext(request, timeout, None, session._default_headers, mask)
    if override is not None:
        ctx.options = override
        if override.attributes:
            ctx.attributes.update(override.attributes)
    for logs in collecting():
        logs.append(ctx.log)
    return ctx


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
        # Before 3.14 aiohttp leaves open what the error carries to the caller.
        if CLOSES_REFUSED or not _carries(cause, response):
            response.close()
        log._record_refusal(cause)
        log._annotate(cause)
        raise


def _carries(error: BaseException, response: aiohttp.ClientResponse) -> bool:
    carried = (*error.args, *vars(error).values())
    return any(each is response for each in carried)
