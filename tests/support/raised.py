"""Exceptions that are raised for the status of an answer."""

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from aioretry_smithy import client_decorator

INFO = aiohttp.RequestInfo(
    URL("http://example.com/"), "GET", CIMultiDictProxy(CIMultiDict()), URL("/")
)


def raised(status, headers=None, kind=aiohttp.ClientResponseError):
    """Make an exception as aiohttp does for a status."""
    given = headers
    return kind(INFO, (), status=status, headers=given)


@client_decorator
async def raising(delegate, ctx, request):
    """Raise for each status of 400 and above, as middlewares of many clients do."""
    response = await delegate.execute(ctx, request)
    response.raise_for_status()
    return response
