"""Handle the requests and the results of retried calls, of HTTP and of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .._bodies import response_content as _content
from .._bodies.replayable_payload import SpentBodyError
from .._bodies.request_body import is_spent
from .._call.call import Call, forget_body, tell_of_body
from .._call.outcome import Request, Result, connection_of, headers_of
from .._failures.hints import retry_after
from .._request.keys import service_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest


_T = TypeVar("_T")


class CallAdapter:
    """Handles the requests and the results of one kind of call: of functions, this one.

    Any result of a function is a success, without body or hints, and it may be called
    again with the same arguments. Strategies with content look at what it returned. An
    adapter has no state: one object serves all calls of its kind.
    """

    __slots__ = ()

    def key(self, request: Request) -> str | None:
        """Return the name of those calls that share a quota with *request*."""
        name: str = request.name
        return name

    def with_count(self, request: Request, name: str, count: int) -> Request:
        """Return *request* with the number of attempts before it, under a name."""
        return request

    def is_spent(self, call: Call, request: Request, cause: Exception | None) -> bool:
        """Say whether *request* cannot be sent again."""
        return False

    def retry_after(self, result: Result) -> float | None:
        """Return the seconds that *result* asks to wait, or None."""
        return None

    async def content(self, result: Result, limit: int) -> object:
        """Return the content for strategies to look at, bytes up to a *limit*."""
        return result

    async def whole(self, result: Result) -> None:
        """Read the rest of *result* into memory, if it comes over a connection."""

    async def read(
        self,
        ctx: ClientRequestContext,
        result: Result,
        look: Callable[[Result], Awaitable[_T]],
    ) -> _T:
        """Read what is wanted of a result within its attempt.

        Raises:
            Exception: That failed; so the attempt has failed, also in its log.
        """
        return await look(result)

    def release(
        self, result: Result, seconds: float, *, keep: bool
    ) -> Awaitable[None] | None:
        """Release the connection of *result*, in at most *seconds*.

        It may go on in what it returns, which is awaited. What to *keep* stays
        readable.
        """
        return None

    def close(self, result: Result) -> None:
        """Close the connection of *result* at once."""


RPC = CallAdapter()


class HttpAdapter(CallAdapter):
    """All that a retried call does to requests and responses of HTTP."""

    __slots__ = ()

    def key(self, request: HttpRequest) -> str | None:
        """Return the ``host:port`` of *request*, or None without one."""
        return service_key(request)

    def with_count(self, request: HttpRequest, name: str, count: int) -> HttpRequest:
        """Return *request* with a header for the number of attempts before it."""
        return request.with_header(name, str(count))

    def is_spent(
        self, call: Call, request: HttpRequest, cause: Exception | None
    ) -> bool:
        """Say whether the body of *request* cannot be sent again."""
        return isinstance(cause, SpentBodyError) or is_spent(call, request)

    def retry_after(self, response: aiohttp.ClientResponse) -> float | None:
        """Return the seconds that the server asks to wait, or None."""
        return retry_after(headers_of(response))

    async def content(self, response: aiohttp.ClientResponse, limit: int) -> bytes:
        """Return the first *limit* bytes of a body; the response stays readable."""
        return await _content.read_head(response, limit)

    async def whole(self, response: aiohttp.ClientResponse) -> None:
        """Read the whole body, unless already read; the response stays readable."""
        if _content.whole_body(response) is None:
            await _content.buffer(response)

    async def read(
        self,
        ctx: ClientRequestContext,
        response: aiohttp.ClientResponse,
        look: Callable[[aiohttp.ClientResponse], Awaitable[_T]],
    ) -> _T:
        """Read what is wanted of a body within its attempt.

        Raises:
            Exception: The body failed; so the attempt has failed, also in its log.
        """
        try:
            looked = await _content.read_within(ctx, response, look)
        except Exception:
            forget_body(ctx.call)
            raise
        if ctx.call.awaiting_body:
            tell_of_body(ctx.call, response, _content.whole_body(response))
        return looked

    def release(
        self, response: aiohttp.ClientResponse, seconds: float, *, keep: bool
    ) -> Awaitable[None] | None:
        """Release *response* and its connection, in at most *seconds*."""
        if keep:
            return _content.keep(response)
        if connection_of(response) is not None:
            return _content.discard(response, seconds=seconds)
        response.release()
        return None

    def close(self, response: aiohttp.ClientResponse) -> None:
        """Close *response* and its connection."""
        response.close()


HTTP = HttpAdapter()
