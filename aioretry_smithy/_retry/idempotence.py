"""Say whether a server may see a request twice, one after the other or at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._call.call import Call
    from .._context.context import ClientRequestContext
    from .._context.options import Options
    from .._request.request import HttpRequest


IDEMPOTENT_METHODS = frozenset(
    {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"}
)
"""The methods that a server may see twice (RFC 9110, section 9.2.2, and QUERY)."""


def is_idempotent(ctx: ClientRequestContext) -> bool:
    """Say whether the server may see the request twice, by method or by header."""
    return may_be_repeated(ctx.call, ctx.request)


def may_be_hedged(ctx: ClientRequestContext, request: HttpRequest) -> bool:
    """Say whether the server may see a request twice at the same time.

    Not one with a key that was made for it: while one is in work, servers refuse
    another with its key, or carry it out too. A caller who brings a key knows better.
    """
    options, key = ctx.options, ctx.call.key
    if key is not None and key.was_made_for(request):
        return options is not None and options.idempotent is True
    return may_be_repeated(ctx.call, request)


def may_be_repeated(call: Call, request: HttpRequest) -> bool:
    """Say whether the server may see a request twice, by the options around it too."""
    options: Options | None = call.options
    if options is not None and options.idempotent is not None:
        return options.idempotent
    if request.method in IDEMPOTENT_METHODS:
        return True
    key, resources = call.key, call.resources
    if resources is not None and resources.key_stayed:
        # A redirect led it to a server that would not recognise it.
        return False
    if "Idempotency-Key" in request.headers:
        return True
    return key is not None and key.header in request.headers
