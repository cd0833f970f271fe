"""Make a session of its arguments, and refuse those that are misspelt."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypedDict

from aiohttp import ClientSession

from .._errors import bad_argument
from .._meant import NAMES_ELSEWHERE, nearest
from .standard import standard_decorators

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import (
        Awaitable,
        Callable,
        Collection,
        Iterable,
        Mapping,
        Sequence,
    )

    import aiohttp
    from aiohttp.abc import AbstractCookieJar
    from aiohttp.typedefs import JSONEncoder, LooseCookies, LooseHeaders, StrOrURL

    from .._request.arguments import Arguments

STANDARD = {
    "response_timeout",
    *inspect.signature(standard_decorators).parameters,
} - {"has_group"}
"""The arguments of the standard chain besides those of a session."""


class SessionArguments(TypedDict, total=False):
    """The arguments of :class:`aiohttp.ClientSession`, for type checkers alone.

    Those of the newest aiohttp that is tested; :func:`check_arguments` goes by the one
    that is installed.
    """

    connector: aiohttp.BaseConnector | None
    loop: AbstractEventLoop | None
    cookies: LooseCookies | None
    headers: LooseHeaders | None
    proxy: StrOrURL | None
    proxy_auth: aiohttp.BasicAuth | None
    skip_auto_headers: Iterable[str] | None
    auth: aiohttp.BasicAuth | None
    json_serialize: JSONEncoder
    json_serialize_bytes: Callable[[Any], bytes] | None
    request_class: type[aiohttp.ClientRequest]
    response_class: type[aiohttp.ClientResponse]
    ws_response_class: type[aiohttp.ClientWebSocketResponse]
    version: aiohttp.HttpVersion
    cookie_jar: AbstractCookieJar | None
    connector_owner: bool
    raise_for_status: bool | Callable[[aiohttp.ClientResponse], Awaitable[None]]
    read_timeout: float | None
    conn_timeout: float | None
    timeout: aiohttp.ClientTimeout
    auto_decompress: bool
    trust_env: bool
    requote_redirect_url: bool
    trace_configs: list[aiohttp.TraceConfig] | None
    read_bufsize: int
    max_line_size: int
    max_field_size: int
    max_headers: int
    fallback_charset_resolver: Callable[[aiohttp.ClientResponse, bytes], str]
    middlewares: Sequence[aiohttp.ClientMiddlewareType]
    ssl_shutdown_timeout: float | None


def new_session(base_url: StrOrURL | None, arguments: Arguments) -> ClientSession:
    """Make a session.

    Raises:
        RuntimeError: No event loop is running.
    """
    try:
        return ClientSession(base_url, **arguments)
    except RuntimeError as error:
        # Not asked before: aiohttp needs none if the connector has one.
        if str(error) != "no running event loop":
            raise
        message = (
            "build() needs a running event loop, as aiohttp.ClientSession does: write"
            " 'async with builder.build() as session:' in a coroutine, and run that"
            " with asyncio.run()"
        )
        raise RuntimeError(message) from error


def check_arguments(given: Mapping[str, object], *, standard: bool = False) -> None:
    """Refuse unknown arguments of a session, and suggest the nearest name.

    Of a *standard* chain, its own arguments are known, too. A number of seconds is no
    timeout of a session.
    """
    if not given:
        return
    _check_names(given, standard=standard)
    if isinstance(timeout := given.get("timeout"), int | float):
        expected = (
            "an aiohttp.ClientTimeout; response_timeout takes the seconds of a call,"
            " and attempt_timeout those of an attempt"
        )
        raise bad_argument("timeout", timeout, expected)


def _check_names(given: Collection[str], *, standard: bool) -> None:
    parameters = inspect.signature(ClientSession).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        # A tracer has replaced the class by a function that takes any name.
        return
    known = {each.name for each in parameters}
    expected = "an argument of aiohttp.ClientSession"
    if standard:
        known |= STANDARD
        expected += " or of SessionBuilder.standard()"
    for name in given:
        if name in known:
            continue
        if name in STANDARD:
            expected += "; SessionBuilder.standard() has one of that name"
        elif not standard and name in NAMES_ELSEWHERE:
            expected += f"; SessionBuilder.standard() has {NAMES_ELSEWHERE[name]!r}"
        else:
            expected += nearest(name, known)
        # Without the value, which may be a secret.
        raise bad_argument("argument", name, expected)
