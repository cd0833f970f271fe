"""Attributes that spans and metrics of OpenTelemetry share."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .._text import encodable
from .outcome import ANOTHER_METHOD, error_type, known_method

if TYPE_CHECKING:
    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest

Attributes: TypeAlias = dict[str, str | int | float]


def span_name(request: HttpRequest) -> str:
    """Name a span by its method, as far as that is known."""
    method = known_method(request)
    return "HTTP" if method == ANOTHER_METHOD else method


def server_attributes(request: HttpRequest) -> Attributes:
    """Say whom a request goes to; nothing where its URL is none."""
    try:
        host, port = request.url.raw_host, request.url.port
    except Exception:
        # It is for aiohttp to report that.
        return {}
    if not host or port is None:
        return {}
    return {"server.address": encodable(host.lower()), "server.port": port}


def error_attributes(
    ctx: ClientRequestContext, cause: BaseException | None
) -> Attributes:
    """Say what went wrong; nothing where nothing did."""
    kind = error_type(ctx, cause)
    return {} if kind is None else {"error.type": kind}
