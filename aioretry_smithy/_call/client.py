"""Define clients, and decorators that wrap a client in another."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, runtime_checkable

from .._errors import bad_argument
from .recording import record_response

if TYPE_CHECKING:
    import aiohttp

    from .._masking.mask import Mask
    from .._request.request import HttpRequest
    from .context import ClientRequestContext

_C = TypeVar("_C")


@runtime_checkable
class HttpClient(Protocol):
    """Anything that executes a request. After Armeria's ``HttpClient``."""

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send *request* and return the response, its body still to be read.

        Args:
            ctx: The call, or the attempt, that the request belongs to.
            request: The request to send; not always ``ctx.request``, because each
                decorator may pass on a changed copy.
        """
        ...


Decorator: TypeAlias = Callable[[HttpClient], HttpClient]
"""A function that wraps a client in another one."""


class DecoratingClient:
    """A client around another: the base of decorators written as classes.

    Override :meth:`execute` and await the delegate in it:

    >>> class UserAgentClient(DecoratingClient):
    ...     async def execute(self, ctx, request):
    ...         request = request.with_header("User-Agent", "shop/1.0")
    ...         return await self.delegate.execute(ctx, request)

    The class itself is the decorator: ``SessionBuilder().decorator(UserAgentClient)``.

    Args:
        delegate: The next client inwards.
    """

    delegate: HttpClient
    """The next client inwards."""

    mask: Mask | None = None
    """Names to hide in logs, besides the usual secrets."""

    def __init__(self, delegate: HttpClient) -> None:
        self.delegate = recorded(delegate)

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Pass the request on unchanged."""
        return await self.delegate.execute(ctx, request)

    def describe(self) -> str:
        """Return one line for ``SessionBuilder.describe()``: name and settings."""
        return type(self).__name__


DecoratingFunction: TypeAlias = Callable[
    [HttpClient, "ClientRequestContext", "HttpRequest"],
    Awaitable["aiohttp.ClientResponse"],
]


class _FunctionClient(DecoratingClient):
    def __init__(self, delegate: HttpClient, function: DecoratingFunction) -> None:
        super().__init__(delegate)
        self._function = function

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        try:
            response = await self._function(self.delegate, ctx, request)
            if ctx._answer is None or response is not ctx._answer:
                record_response(ctx.log, response)
        except BaseException as cause:
            ctx.log._record_failure(cause)
            raise
        return response

    def describe(self) -> str:
        name = getattr(self._function, "__name__", None)
        return name or type(self._function).__name__


def client_decorator(function: DecoratingFunction) -> Decorator:
    """Make a decorator of a coroutine function.

    Args:
        function: ``async def function(delegate, ctx, request)``; it awaits
            ``delegate.execute(ctx, request)`` and returns a response.

    >>> @client_decorator
    ... async def user_agent(delegate, ctx, request):
    ...     request = request.with_header("User-Agent", "shop/1.0")
    ...     return await delegate.execute(ctx, request)
    """
    if not callable(function):
        raise bad_argument("function", function, "async (delegate, ctx, request)")

    def decorator(delegate: HttpClient) -> HttpClient:
        return _FunctionClient(delegate, function)

    return decorator


class RecordingJoint:
    """Records the outcome of a user's client in the log.

    The transport records its own outcome. A user's decorator around it may return
    another response, raise another exception, or answer when the transport failed.
    """

    __slots__ = ("delegate",)

    def __init__(self, delegate: HttpClient) -> None:
        self.delegate = delegate

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Pass the request on, and record the outcome if it is a new one."""
        try:
            response = await self.delegate.execute(ctx, request)
            if ctx._answer is None or response is not ctx._answer:
                record_response(ctx.log, response)
        except BaseException as cause:
            ctx.log._record_failure(cause)
            raise
        return response


def recorded(client: HttpClient) -> HttpClient:
    """Return a client that records its outcome: *client*, or a joint around it."""
    return client if _records_outcome(client) else RecordingJoint(client)


def _records_outcome(client: HttpClient) -> bool:
    if "execute" in getattr(client, "__dict__", ()):
        return False
    # The module of the method counts: a user's subclass may override it.
    execute = getattr(type(client), "execute", None)
    written_in = getattr(execute, "__module__", None) or ""
    return written_in.partition(".")[0] == __name__.partition(".")[0]


def find_client(client: HttpClient, wanted: type[_C]) -> _C | None:
    """Return the outermost client of a class in a chain, or None."""
    return next((link for link in chain_of(client) if isinstance(link, wanted)), None)


def chain_of(client: HttpClient) -> list[HttpClient]:
    """Return the clients of a chain from the outside in, without the joints."""
    chain = [client]
    while isinstance(delegate := _delegate_of(chain[-1]), HttpClient):
        if any(link is delegate for link in chain):
            break
        chain.append(delegate)
    return [link for link in chain if type(link) is not RecordingJoint]


def _delegate_of(client: HttpClient) -> object:
    # Static first: a mock makes up an endless chain of delegates.
    if inspect.getattr_static(client, "delegate", None) is None:
        return None
    return getattr(client, "delegate", None)
