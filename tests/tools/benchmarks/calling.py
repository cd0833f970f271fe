"""Ways of calling and settings of retries that all variants share."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import aiohttp

ATTEMPTS = 3
DELAY = 0.0
BARE = "bare aiohttp"
BY_HAND = "hand-written loop"
HOST = "orders"
"""The name of the circuit, for libraries that need one."""

Call = Callable[..., Awaitable[int]]
"""Gets a URL and returns the status. With options, where it takes some, it posts."""


class ServerError(Exception):
    """The error for a status in libraries that retry exceptions only."""


RETRIED = (aiohttp.ClientError, TimeoutError, ServerError)


@dataclass(frozen=True)
class Variant:
    """One way to call."""

    name: str
    open: Callable[[], AbstractAsyncContextManager[Call]]
    kind: str
    retries: bool = True
    needs: tuple[str, ...] = ()
    """The packages that have to be installed."""

    is_function: bool = False
    """Whether it calls a function that sends nothing."""

    group: str = ""
    """The scenarios that it takes part in, where these are not the usual ones."""


def getting(session):
    """Return the call that needs no care for failures, since the session takes it."""

    async def call(url, **options):
        request = session.post(url, **options) if options else session.get(url)
        async with request as response:
            return response.status

    return call


def checked(response):
    """Return the status, or raise where only exceptions are retried."""
    if response.status >= 500:
        raise ServerError(response.status)
    return response.status
