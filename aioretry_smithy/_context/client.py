"""Define clients, and decorators that wrap a client in another."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    overload,
    runtime_checkable,
)

from .._call.time_limits import until_deadline
from .._errors import bad_argument
from .recording import record_error, record_result

if TYPE_CHECKING:
    import aiohttp
    from typing_extensions import TypeVar as TypeVarWithDefault

    from .._call.outcome import Request
    from .._masking.mask import Mask
    from .._request.request import HttpRequest, RpcRequest
    from .context import ClientRequestContext


_C = TypeVar("_C")
_F = TypeVar("_F", bound=Callable[..., Any])


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


@runtime_checkable
class RpcClient(Protocol):
    """Anything that executes the call of a function. After Armeria's ``RpcClient``."""

    async def execute(self, ctx: ClientRequestContext, request: RpcRequest) -> Any:
        """Call the function and return what it returns.

        Args:
            ctx: The call, or the attempt, that the request belongs to.
            request: The name and the arguments of the call; not always those that the
                caller gave, because each decorator may pass on a changed copy.
        """
        ...


Decorator: TypeAlias = Callable[[HttpClient], HttpClient]
"""A function that wraps a client in another one."""

RpcDecorator: TypeAlias = Callable[[RpcClient], RpcClient]
"""The same for the calls of a function."""

if TYPE_CHECKING:
    # Type checkers know typing_extensions without having it; programs need not.
    ClientT = TypeVarWithDefault(
        "ClientT", bound=HttpClient | RpcClient, default=HttpClient
    )
else:
    ClientT = TypeVar("ClientT")


class ForOneKind:
    """A client that may be made for one kind of chain."""

    __slots__ = ()

    _serves: ClassVar[Literal["sessions", "functions"] | None] = None
    """The kind of chain that it is for, where it cannot serve both."""

    _counterpart: ClassVar[str] = ""
    """The name of the class that does the same for the other kind, if there is one."""


class DecoratingClient(ForOneKind, Generic[ClientT]):
    """A client around another: the base of decorators written as classes.

    Override :meth:`execute` and await the delegate in it:

    >>> class UserAgentClient(DecoratingClient):
    ...     async def execute(self, ctx, request):
    ...         request = request.with_header("User-Agent", "shop/1.0")
    ...         return await self.delegate.execute(ctx, request)

    The class itself is the decorator: ``SessionBuilder().decorator(UserAgentClient)``.
    It serves the calls of :func:`rpc` too; for type checkers derive from
    ``DecoratingClient[RpcClient]`` there.

    Args:
        delegate: The next client inwards.
    """

    delegate: ClientT
    """The next client inwards.

    Another one may be put here at any time; it gets the requests from then on.
    """

    _is_retrying: ClassVar[bool] = False
    """Whether it retries, so that there may be no other such client in a chain."""

    _sends_again: ClassVar[bool] = False
    """Whether it may send a request more than once, each with a log of its own."""

    _stays_outside: ClassVar[bool] = False
    """Whether it has no place inside of a client that retries."""

    _needs_origin: bool = False
    """Whether it acts on the session's own origin or group, so that there must be one.
    """

    mask: Mask | None = None
    """Names to hide in logs, besides the usual secrets."""

    def __init__(self, delegate: ClientT) -> None:
        self.delegate = delegate

    def __setattr__(self, name: str, value: object) -> None:
        if name == "delegate":
            value = recorded(value)
        super().__setattr__(name, value)

    async def execute(self, ctx: ClientRequestContext, request: Request) -> Any:
        """Send the request on."""
        return await self.delegate.execute(ctx, request)

    def describe(self) -> str:
        """Return one line for ``SessionBuilder.describe()``: name and settings."""
        return type(self).__name__


DecoratingFunction: TypeAlias = Callable[
    [HttpClient, "ClientRequestContext", "HttpRequest"],
    Awaitable["aiohttp.ClientResponse"],
]
RpcDecoratingFunction: TypeAlias = Callable[
    [RpcClient, "ClientRequestContext", "RpcRequest"], Awaitable[Any]
]


class _FunctionClient(DecoratingClient[Any]):
    def __init__(self, delegate: Any, function: Callable[..., Awaitable[Any]]) -> None:
        super().__init__(delegate)
        self._function = function

    async def execute(self, ctx: ClientRequestContext, request: Request) -> Any:
        try:
            code = self._function(self.delegate, ctx, request)
            result = await until_deadline(ctx, code, raises=True)
            record_result(ctx, result, self._function)
        except BaseException as cause:
            record_error(ctx, cause)
            raise
        return result

    def describe(self) -> str:
        name = getattr(self._function, "__name__", None)
        return name or type(self._function).__name__


@overload
def client_decorator(function: DecoratingFunction) -> Decorator: ...
@overload
def client_decorator(function: RpcDecoratingFunction) -> RpcDecorator: ...
def client_decorator(function: Any) -> Any:
    """Make a decorator of a coroutine function.

    Args:
        function: ``async def function(delegate, ctx, request)``; it awaits
            ``delegate.execute(ctx, request)`` and returns a response, or around a
            function of :func:`rpc` any value.

    >>> @client_decorator
    ... async def user_agent(delegate, ctx, request):
    ...     request = request.with_header("User-Agent", "shop/1.0")
    ...     return await delegate.execute(ctx, request)
    """
    if not callable(function):
        raise bad_argument("function", function, "async (delegate, ctx, request)")

    def decorator(delegate: Any) -> Any:
        return _FunctionClient(delegate, function)

    return decorator


class OutcomeRecorder:
    """Records the outcome of a user's client in the log.

    The transport records its own outcome. A user's decorator around it may return
    another response, raise another exception, or answer when the transport failed.
    """

    __slots__ = ("delegate",)

    def __init__(self, delegate: Any) -> None:
        self.delegate = delegate

    async def execute(self, ctx: ClientRequestContext, request: Request) -> Any:
        """Pass the request on, and record the outcome if it is a new one."""
        try:
            code = self.delegate.execute(ctx, request)
            result = await until_deadline(ctx, code, raises=True)
            record_result(ctx, result, self.delegate)
        except BaseException as cause:
            record_error(ctx, cause)
            raise
        return result


def recorded(client: Any) -> Any:
    """Return a client whose outcome is recorded: itself, or an OutcomeRecorder."""
    return client if _records_outcome(client) else OutcomeRecorder(client)


def _records_outcome(client: object) -> bool:
    if "execute" in getattr(client, "__dict__", ()):
        return False
    # The module of the method counts: a user's subclass may override it.
    execute = getattr(type(client), "execute", None)
    written_in = getattr(execute, "__module__", None) or ""
    return written_in.partition(".")[0] == __name__.partition(".")[0]


def find_client(client: HttpClient | RpcClient, wanted: type[_C]) -> _C | None:
    """Return the outermost client of a class in a chain, or None."""
    return next((link for link in chain_of(client) if isinstance(link, wanted)), None)


def chain_of(client: HttpClient | RpcClient) -> list[HttpClient]:
    """Return the clients of a chain from the outside in, without OutcomeRecorders."""
    chain: list[Any] = [client]
    while isinstance(delegate := _delegate_of(chain[-1]), HttpClient):
        if any(link is delegate for link in chain):
            break
        chain.append(delegate)
    return [link for link in chain if type(link) is not OutcomeRecorder]


def _delegate_of(client: object) -> object:
    # Static first: a mock makes up an endless chain of delegates.
    if inspect.getattr_static(client, "delegate", None) is None:
        return None
    return getattr(client, "delegate", None)
