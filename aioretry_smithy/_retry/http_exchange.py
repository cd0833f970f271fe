"""Do for a retried call what depends on HTTP: requests and responses."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

from .._bodies import response_content as _content
from .._bodies.drain import discard
from .._bodies.request_body import SpentBodyError, is_spent
from .._call.time_limits import IN_BODY, passed_limit
from .._request.keys import host_key
from .hints import retry_after

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp

    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest

_T = TypeVar("_T")


class HttpExchange:
    """Knows requests and responses of HTTP, so that a retried call need not."""

    __slots__ = ()

    def key(self, request: HttpRequest) -> str | None:
        """Return the name of the server that *request* goes to; None without one."""
        return host_key(request)

    def with_count(self, request: HttpRequest, name: str, count: int) -> HttpRequest:
        """Return *request* with the number of attempts made before it."""
        return request.with_header(name, str(count))

    def is_success(self, response: aiohttp.ClientResponse) -> bool:
        """Say whether *response* is good news."""
        return response.status < 400

    def is_spent(
        self, ctx: ClientRequestContext, request: HttpRequest, cause: Exception | None
    ) -> bool:
        """Say whether the body of *request* cannot be sent again."""
        return isinstance(cause, SpentBodyError) or is_spent(ctx, request)

    def hint(self, response: aiohttp.ClientResponse) -> float | None:
        """Return the seconds that the server asks to be left alone, if it does."""
        return retry_after(response.headers, now=time.time())

    async def read(
        self,
        attempt: ClientRequestContext,
        response: aiohttp.ClientResponse,
        look: Callable[[aiohttp.ClientResponse], Awaitable[_T]] | None,
        *,
        whole: bool,
    ) -> _T | None:
        """Read a body in its attempt's time: whole, as far as *look* wants, or both.

        Raises:
            Exception: The body failed, and so did its attempt, whose log says so.
        """
        try:
            try:
                # For bodies that do not come from aiohttp, which has its own timer.
                async with asyncio.timeout_at(attempt.deadline):
                    if whole:
                        await _content.buffer(response)
                    return None if look is None else await look(response)
            except TimeoutError as cut:
                if (passed := passed_limit(attempt, cut, IN_BODY)) is None:
                    raise
                raise passed() from cut
        except Exception as cause:
            _content.fail(attempt.log, response, cause)
            raise

    async def release(self, response: aiohttp.ClientResponse, seconds: float) -> None:
        """Give *response* up, and its connection back, in at most *seconds*."""
        await discard(response, seconds=seconds)

    def close(self, response: aiohttp.ClientResponse) -> None:
        """Hang up on *response*."""
        response.close()


HTTP = HttpExchange()
