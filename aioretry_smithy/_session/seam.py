"""The seam into aiohttp: where a call enters the chain, and where it leaves it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from .._bodies.new_response import CLOSES_REFUSED
from .._call.context import ClientRequestContext
from .._call.options import current_options
from .._errors import bad_argument
from .._log.attachment import attach
from .._log.capture import collecting
from .._request.request import HttpRequest
from .aiohttp_transport import AiohttpTransport, closed
from .deadline import response_timeout
from .uploads import measure_uploads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    import aiohttp
    from aiohttp import ClientSession
    from aiohttp.typedefs import StrOrURL

    from .._call.client import HttpClient
    from .._log.request_log import RequestLog
    from .._masking.mask import Mask

_INSTALLED = "_aioretry_smithy_installed"


class _Installed(NamedTuple):
    client: HttpClient
    transport: AiohttpTransport
    request: Callable[..., Any]
    request_before: Callable[..., Any] | None
    request_class_before: type[aiohttp.ClientRequest]
    resend_before: bool | None


def install(
    session: ClientSession,
    transport: AiohttpTransport,
    client: HttpClient,
    *,
    mask: Mask,
    resend: bool,
) -> None:
    """Let the calls of *session* go through *client*, which ends in *transport*.

    Every verb ends in ``session._request``; one attribute of the instance catches them
    all, and the session stays what it is. Without *resend* aiohttp no longer sends a
    request again behind our back.
    """
    reference = transport.session = weakref.ref(session)

    def _request(
        method: str, str_or_url: StrOrURL, **options: Any
    ) -> Coroutine[Any, Any, aiohttp.ClientResponse]:
        # The coroutine gets the session itself: while a call waits, somebody has to
        # keep it alive. This function must not, or no session would ever be freed.
        return _call(reference(), client, mask, method, str_or_url, options)

    attributes = vars(session)
    resend_before = None if resend else session._retry_connection
    # Somebody else may have put a function of theirs in the same place.
    transport.replaced = attributes.get("_request")
    attributes[_INSTALLED] = _Installed(
        client,
        transport,
        _request,
        transport.replaced,
        measure_uploads(session),
        resend_before,
    )
    attributes["_request"] = _request
    if not resend:
        session._retry_connection = False
    transport.json.install(session)


def remove(session: ClientSession) -> None:
    """Undo :func:`install`; a plain session stays as it is.

    Raises:
        ValueError: Somebody has put a function of theirs over ours.
    """
    attributes = vars(session)
    before: _Installed | None = attributes.get(_INSTALLED)
    if before is None:
        return
    request = attributes.get("_request", before.request)
    if request is not before.request:
        raise bad_argument("session._request", request, "what decorate() put there")
    del attributes[_INSTALLED]
    attributes.pop("_request", None)
    if before.request_before is not None:
        attributes["_request"] = before.request_before
    before.transport.json.remove(session)
    session._request_class = before.request_class_before
    if before.resend_before is not None:
        session._retry_connection = before.resend_before


def installed(session: ClientSession) -> HttpClient | None:
    """Return the outermost client of a session, or None for a plain one."""
    before: _Installed | None = vars(session).get(_INSTALLED)
    return None if before is None else before.client


async def _call(
    session: ClientSession | None,
    client: HttpClient,
    mask: Mask,
    method: str,
    target: StrOrURL,
    options: dict[str, Any],
) -> aiohttp.ClientResponse:
    if session is None:
        raise closed()
    refuse = options.get("raise_for_status")
    if refuse is None:
        refuse = session._raise_for_status
    if refuse:
        # The decorators are to see the status, and the body where they need it.
        options["raise_for_status"] = False
    request = HttpRequest.of_call(method, target, options, session._base_url)
    ctx = _begin(session, mask, request, options)
    try:
        response = await client.execute(ctx, request)
    except BaseException as cause:
        ctx.log._annotate(cause)
        if ctx._resources is not None:
            ctx._resources.close_responses()
        raise
    finally:
        resources, ctx._resources = ctx._resources, None
        if resources is not None and resources.bodies:
            await resources.close_bodies()
        ctx.log._end_call()
    attach(ctx.log, response)
    if refuse:
        await _refuse(response, refuse, ctx.log)
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
