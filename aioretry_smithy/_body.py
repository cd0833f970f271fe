"""Bodies that go out whole, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import aiohttp

from ._errors import UnprocessedRequestError

if TYPE_CHECKING:
    from ._context import ClientRequestContext
    from ._request import HttpRequest

_VALUES = (str, bytes, bytearray, memoryview, int, float, type(None))


class SpentBodyError(UnprocessedRequestError):
    """The seam's own refusal: another attempt would meet it again."""


def can_be_sent_again(data: object) -> bool:
    """Say whether aiohttp sends the same bytes each time that it is given *data*."""
    if isinstance(data, _VALUES):
        return True
    if isinstance(data, aiohttp.FormData):
        return all(isinstance(value, _VALUES) for _, _, value in data._fields)
    pairs: Any = data.items() if isinstance(data, Mapping) else data
    if not isinstance(data, Mapping | list | tuple):
        return False
    return all(
        isinstance(pair, list | tuple) and isinstance(pair[-1], _VALUES)
        for pair in pairs
        if pair
    )


def claim(ctx: ClientRequestContext, request: HttpRequest) -> None:
    """Refuse a body that has been given to aiohttp before and cannot go out twice.

    Raises:
        UnprocessedRequestError: An earlier attempt of this call has read it.
    """
    data = request.options.get("data")
    if not can_be_sent_again(data) and not ctx.claim(data):
        message = f"the body was read by an earlier attempt: {type(data).__name__}"
        raise SpentBodyError(message)


def is_spent(ctx: ClientRequestContext, request: HttpRequest) -> bool:
    """Say whether sending *request* once more would be refused."""
    return ctx.was_sent(request.options.get("data"))
