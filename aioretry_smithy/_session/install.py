"""Install a chain in a session, or remove the chain from one."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from .._context.chain import chain_of, find_client, mask_of, sends_again
from .._endpoints.client import LoadBalancingClient
from .._errors import bad_argument
from .request_classes import (
    Serializers,
    follow_hops,
    keep_json,
    mark_pool,
    measure_uploads,
    restore_serializers,
)
from .session_chain import SessionChain, call_and_raise

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    import aiohttp
    from aiohttp import ClientSession
    from aiohttp.typedefs import StrOrURL

    from .._context.client import HttpClient
    from .._request.endpoint import Service
    from .aiohttp_transport import AiohttpTransport


_INSTALLED = "_aioretry_smithy_installed"


class _Installed(NamedTuple):
    client: HttpClient
    transport: AiohttpTransport
    request: Callable[..., Any]
    request_before: Callable[..., Any] | None
    request_class_before: type[aiohttp.ClientRequest]
    resend_before: bool | None
    serializers_before: Serializers


def service_of(client: HttpClient) -> Service | None:
    """Return the service of a chain's endpoint group; None without a group."""
    balancing = find_client(client, LoadBalancingClient)
    return None if balancing is None else balancing.service


def install(
    session: ClientSession, transport: AiohttpTransport, client: HttpClient
) -> ClientSession:
    """Let the calls of *session* go through *client*, which ends in *transport*.

    Every verb ends in ``session._request``; one attribute of the instance catches them
    all, and the session stays what it is. In a chain that sends again, aiohttp no
    longer does so behind our back: the transport does. Relative URLs are joined to the
    service of an endpoint group, if there is one.
    """
    reference = transport.session = weakref.ref(session)
    service = service_of(client)
    chain = SessionChain(client, session, mask_of(client), service)
    # Even one that never retries: a block of code may tell it to.
    sends = any(map(sends_again, chain_of(client)))
    raises = session._raise_for_status

    def _request(
        method: str, str_or_url: StrOrURL, **options: Any
    ) -> Coroutine[Any, Any, aiohttp.ClientResponse]:
        # The coroutine gets the session itself, to keep it alive while a call waits.
        # This function must not, or no session would ever be freed.
        if raises or "raise_for_status" in options:
            return call_and_raise(chain, reference(), method, str_or_url, options)
        return chain.send(reference(), method, str_or_url, options)

    attributes = vars(session)
    resend_before = session._retry_connection if sends else None
    # Another library may have put a function in the same place.
    transport.replaced = attributes.get("_request")
    attributes[_INSTALLED] = _Installed(
        client,
        transport,
        _request,
        transport.replaced,
        measure_uploads(session),
        resend_before,
        keep_json(session),
    )
    attributes["_request"] = _request
    if service is not None:
        follow_hops(session)
    if sends:
        transport.resends = bool(session._retry_connection)
        session._retry_connection = False
        mark_pool(session.connector)
    return session


def remove(session: ClientSession) -> None:
    """Undo :func:`install`; a plain session is unchanged.

    Raises:
        ValueError: Another function was put over ours.
    """
    attributes = vars(session)
    before: _Installed | None = attributes.get(_INSTALLED)
    if before is None:
        return
    request = attributes.get("_request", before.request)
    if request is not before.request:
        raise bad_argument("session._request", request, "unchanged since decorate()")
    del attributes[_INSTALLED]
    attributes.pop("_request", None)
    if before.request_before is not None:
        attributes["_request"] = before.request_before
    restore_serializers(session, before.serializers_before)
    session._request_class = before.request_class_before
    if before.resend_before is not None:
        session._retry_connection = before.resend_before


def send_with(
    session: ClientSession, request: Callable[..., Awaitable[aiohttp.ClientResponse]]
) -> None:
    """Let the chain of a session end in *request*, in place of aiohttp."""
    chain: _Installed = vars(session)[_INSTALLED]
    chain.transport.replaced = request


def installed(session: ClientSession) -> HttpClient | None:
    """Return the outermost client of a session, or None for a plain one."""
    before: _Installed | None = vars(session).get(_INSTALLED)
    return None if before is None else before.client
