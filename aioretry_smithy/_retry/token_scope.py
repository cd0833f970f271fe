"""Name the calls that share the quota and the rate of a Smithy strategy."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeAlias

from .._errors import bad_argument

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest

TokenScope: TypeAlias = (
    "str | Callable[[ClientRequestContext, HttpRequest], str | None] | None"
)
"""A name for all calls, a function that names the scope of each, or None."""


def names_scope(value: object) -> bool:
    """Say whether *value* is a :data:`TokenScope`."""
    if callable(value):
        return not inspect.iscoroutinefunction(value)
    return value is None or isinstance(value, str)


def scope_of(
    token_scope: TokenScope,
    ctx: ClientRequestContext,
    request: HttpRequest,
    key: Callable[[HttpRequest], str | None],
) -> str | None:
    """Return the scope of a call; its *key* by default.

    Raises:
        ValueError: The function returned neither a str nor None.
    """
    if token_scope is None:
        return key(request)
    if isinstance(token_scope, str):
        return token_scope
    scope: Any = token_scope(ctx, request)
    if scope is None or isinstance(scope, str):
        return scope
    raise bad_argument("token_scope", scope, "returns a str, or None")
