"""Refusals of requests that aiohttp would not send, without a network."""

from __future__ import annotations

import asyncio
import inspect
import io
from collections.abc import AsyncIterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import payload
from multidict import CIMultiDict
from yarl import URL

from .._call.closing import refuse_as_closed
from .._errors import bad_argument
from .._session.request_classes import serializer_of

if TYPE_CHECKING:
    from .._context.context import ClientRequestContext
    from .._request.arguments import Arguments
    from .._request.request import HttpRequest

_SCHEMES = frozenset({"http", "https", "ws", "wss"})
# Those of a request that are checked where aiohttp makes it of them.
_BUILT = "params", "cookies", "auth", "compress", "chunked"
# Bodies of these kinds always pass; others are asked for in the registry of aiohttp.
_BODIES = (
    *(str, bytes, bytearray, memoryview, Mapping, io.IOBase),
    *(aiohttp.FormData, aiohttp.Payload, AsyncIterable),
)


def refuse(ctx: ClientRequestContext, request: HttpRequest) -> None:
    """Raise the error of aiohttp for a request that it would not send.

    Without a session, a client is tested alone.
    """
    session = ctx.call.session
    _refuse_names(session, request)
    if session is not None and session.closed:
        refuse_as_closed()
    _refuse_url(request)
    _refuse_body(session, request.arguments, is_first=ctx.attempt in {None, 1})
    _build(session, request)


def _refuse_names(session: aiohttp.ClientSession | None, request: HttpRequest) -> None:
    """Raise the error of Python for an argument that the session does not have."""
    method = (type(session) if session is not None else aiohttp.ClientSession)._request
    if inspect.isfunction(method) and inspect.iscoroutinefunction(method):
        # Nothing of it runs.
        method(session, request.method, request.target, **request.arguments).close()


def _refuse_url(request: HttpRequest) -> None:
    arguments, url = request.arguments, request.url
    if arguments.get("data") is not None and arguments.get("json") is not None:
        raise bad_argument("json", arguments["json"], "None beside data")
    if url.scheme and url.scheme not in _SCHEMES:
        raise aiohttp.NonHttpUrlClientError(url)
    if not (url.scheme and url.raw_host):
        raise aiohttp.InvalidUrlClientError(url)


def _refuse_body(
    session: aiohttp.ClientSession | None, arguments: Arguments, *, is_first: bool
) -> None:
    """Raise for a body that aiohttp can make nothing of; none is read."""
    value, data = arguments.get("json"), arguments.get("data")
    if value is not None and is_first and session is not None:
        # Later attempts send what the first one has made.
        serializer_of(session)(value)
    if data is None or isinstance(data, _BODIES):
        return
    try:
        payload.PAYLOAD_REGISTRY.get(data, disposition=None)
    except payload.LookupError:
        if not callable(data):
            aiohttp.FormData(data)


def _build(session: aiohttp.ClientSession | None, request: HttpRequest) -> None:
    """Let aiohttp build the request, with a byte in place of a body.

    What it would write is not looked at: tests send odd methods and line ends to see
    how these are shown.
    """
    headers = CIMultiDict(() if session is None else session.headers)
    headers.update(request.headers)
    for name, text in headers.items():
        if not isinstance(text, str):
            raise TypeError(f"header {name!r} is no text: {text!r}")
    arguments = request.arguments
    built: dict[str, Any] = {
        name: value
        for name in _BUILT
        if not isinstance(value := arguments.get(name), Iterator)
    }
    has_body = arguments.get("json") is not None or arguments.get("data")
    proxy = arguments.get("proxy")
    if proxy is not None:
        try:
            proxy = URL(proxy)
        except ValueError:
            raise aiohttp.InvalidURL(proxy) from None
    aiohttp.ClientRequest(
        "POST" if has_body else "GET",
        request.url.with_user(None),
        headers=headers,
        data=b"x" if has_body else None,
        proxy=proxy,
        loop=asyncio.get_running_loop(),
        **built,
    )
