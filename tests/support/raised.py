"""Exceptions that are raised for the status of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from aioretry_smithy import client_decorator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioretry_smithy import ClientRequestContext, HttpClient, HttpRequest

INFO = aiohttp.RequestInfo(
    URL("http://example.com/"), "GET", CIMultiDictProxy(CIMultiDict()), URL("/")
)


def raised(
    status: int,
    headers: Mapping[str, Any] | None = None,
    kind: type[aiohttp.ClientResponseError] = aiohttp.ClientResponseError,
) -> aiohttp.ClientResponseError:
    """Make an exception as aiohttp does for a status."""
    given: Any = headers
    return kind(INFO, (), status=status, headers=given)


@client_decorator
async def raising(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    """Raise for each status of 400 and above, as middlewares of many clients do."""
    response = await delegate.execute(ctx, request)
    response.raise_for_status()
    return response
