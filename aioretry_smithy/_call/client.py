"""The chain: clients that wrap clients."""

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
            request: What to send; not always ``ctx.request``, since each decorator may
                pass a changed copy on.
        """
        ...


Decorator: TypeAlias = Callable[[HttpClient], HttpClient]
"""What makes a client of the client that it wraps."""


class DecoratingClient:
    """A client around another: the base of decorators written as classes.

    Override :meth:`execute`, do what is to be done, and await the delegate:

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
    """What this client wants hidden in logs, beyond the usual secrets."""

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
        return await self._function(self.delegate, ctx, request)

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
    """Records what a client that is not ours made of the outcome of a call.

    The transport records what came back. A decorator around it may return another
    response, raise another exception, or answer where the transport failed.

    Args:
        delegate: The foreign client.
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
            record_response(ctx.log, response)
        except BaseException as cause:
            ctx.log._record_failure(cause)
            raise
        return response


def recorded(client: HttpClient) -> HttpClient:
    """Return a client that keeps the log true: *client*, or a joint around it."""
    return client if _keeps_log_true(client) else RecordingJoint(client)


def _keeps_log_true(client: HttpClient) -> bool:
    if isinstance(client, _FunctionClient) or "execute" in getattr(
        client, "__dict__", ()
    ):
        return False
    # Where it was written counts: a subclass that overrides it is not ours.
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
    # Asked statically first: a mock has another delegate for as long as one asks.
    if inspect.getattr_static(client, "delegate", None) is None:
        return None
    return getattr(client, "delegate", None)
