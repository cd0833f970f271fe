"""Find out what requests cost, and keep with a response what it was charged for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from .._errors import bad_argument, check_not_negative, is_plain_function
from .._failures.failure import judge

if TYPE_CHECKING:
    from collections.abc import Callable

    import aiohttp

    from .._context.context import ClientRequestContext
    from .._log.request_log import RequestLog
    from .._request.request import HttpRequest

    Cost: TypeAlias = Callable[[ClientRequestContext, HttpRequest], float]
    Actual: TypeAlias = Callable[[RequestLog, bytes | None], float | None]

_CHARGES: Final = "_aioretry_smithy_charges"
"""The attribute of a response with what its limits have charged, by their ids."""


def check_function(name: str, function: object, arguments: str) -> None:
    """Refuse what is neither None nor a plain function."""
    if function is not None and not is_plain_function(function):
        expected = f"a plain function of {arguments}, or None"
        raise bad_argument(name, function, expected)


def cost_of(
    cost: Cost | None, ctx: ClientRequestContext, request: HttpRequest
) -> float:
    """Return what a request costs: 1 without a function that says so.

    Raises:
        ValueError: It is no number that is finite and >= 0.
        Exception: The function has raised it; a mistake of the caller's, as is a bad
            number: no other attempt is made, and no circuit breaker counts it.
    """
    if cost is None:
        return 1.0
    try:
        figure = cost(ctx, request)
        check_not_negative("cost", figure)
    except Exception as error:
        judge(error).raised_by_caller = True
        raise
    return figure


def keep_charge(
    response: aiohttp.ClientResponse, limit: object, charge: object
) -> None:
    """Let :func:`charge_of` find a charge, as long as somebody has the response."""
    # A response of a user's class may refuse to be written on.
    attributes = getattr(response, "__dict__", None)
    if attributes is not None:
        # What a decorator has kept, and returns again, has that of the last request.
        attributes.setdefault(_CHARGES, {})[id(limit)] = limit, charge


def charge_of(response: object, limit: object) -> object:
    """Return what a limit has charged for the attempt that brought a response."""
    kept = getattr(response, "__dict__", {}).get(_CHARGES, {})
    # A limit that is kept here has its id for itself.
    return kept.get(id(limit), (None, None))[1]
