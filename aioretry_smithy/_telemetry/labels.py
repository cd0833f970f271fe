"""Describe calls and attempts in labels: never by a path or a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from .._text import encodable

if TYPE_CHECKING:
    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest

Attributes: TypeAlias = dict[str, str | int | float]

KNOWN_METHODS: Final = frozenset(
    "CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE".split()
)
"""What the semantic conventions of OpenTelemetry call a known method."""

ANOTHER_METHOD: Final = "_OTHER"
"""What stands for every other method."""

DURATION_BUCKETS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0),
    *(2.5, 5.0, 7.5, 10.0),
)
"""The limits of a histogram of seconds, as the same conventions have them."""


def known_method(request: HttpRequest) -> str:
    """Return the method of a request, or ``_OTHER`` for one nobody knows."""
    return request.method if request.method in KNOWN_METHODS else ANOTHER_METHOD


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


def error_type(ctx: ClientRequestContext, cause: BaseException | None) -> str | None:
    """Name a failure: the status from 400 on, or the full name of an exception.

    A call that its caller cancelled is none.
    """
    if cause is None:
        status = ctx.log.response_status
        return str(status) if status is not None and status >= 400 else None
    if not isinstance(cause, Exception):
        return None
    return class_name(cause)


def class_name(cause: BaseException) -> str:
    """Return the full name of the class of an exception."""
    kind = type(cause)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def status_class(ctx: ClientRequestContext, cause: BaseException | None) -> str:
    """Sort an outcome: ``2xx`` and the like, or how it came to have no status.

    ``cancelled`` by the caller, ``refused`` by an open circuit, ``unsent`` for anything
    else that no server has seen, ``error`` otherwise.
    """
    if cause is not None and not isinstance(cause, Exception):
        return "cancelled"
    if cause is not None and ctx.log._was_refused:
        return "refused"
    if not ctx.log.sent:
        return "unsent"
    if cause is not None:
        return "error"
    return f"{(ctx.log.response_status or 0) // 100}xx"
