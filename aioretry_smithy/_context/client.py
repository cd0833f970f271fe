"""Clients and decorators: protocols, the base class, decorators of functions."""

from __future__ import annotations

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

from .._call.deadline_cut import until_deadline
from .._call.recorder import record_failure
from .._errors import bad_argument
from .recording import check_awaitable, record_result

if TYPE_CHECKING:
    import aiohttp
    from typing_extensions import TypeVar as TypeVarWithDefault

    from .._call.outcome import Request
    from .._request.request import HttpRequest, RpcRequest
    from .._text.mask import Mask
    from .context import ClientRequestContext


@runtime_checkable
class HttpClient(Protocol):
    """An object that executes requests. After Armeria's ``HttpClient``."""

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
        """Call the function and return the result.

        Args:
            ctx: The call, or the attempt, that the request belongs to.
            request: The name and the arguments of the call; not always those that the
                caller gave, because each decorator may pass on a changed copy.
        """
        ...


Decorator: TypeAlias = Callable[[HttpClient], HttpClient]
"""A function that wraps a client in a new client."""

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
    """The only kind of chain that the client can serve; None for both kinds."""

    _counterpart: ClassVar[str] = ""
    """The name of the equivalent class for the other kind of chain, if any."""


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
    """Whether the client retries: a chain may have only one retrying client."""

    _sends_again: ClassVar[bool] = False
    """Whether it may send a request more than once, each with a log of its own."""

    _stays_outside: ClassVar[bool] = False
    """Whether it has no place inside of a client that retries."""

    _needs_origin: bool = False
    """Whether the client needs a session with a base URL or an endpoint group."""

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
            try:
                result = await until_deadline(ctx, code, raises=True)
            except TypeError:
                check_awaitable(code, self._function)
                raise
            record_result(ctx, result, self._function)
        except BaseException as cause:
            record_failure(ctx, cause)
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
    is_client = isinstance(function, type) and issubclass(function, DecoratingClient)
    if is_client or not callable(function):
        itself = "; a class of clients is a decorator itself" if is_client else ""
        expected = f"async (delegate, ctx, request){itself}"
        raise bad_argument("function", function, expected)

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
            try:
                result = await until_deadline(ctx, code, raises=True)
            except TypeError:
                check_awaitable(code, self.delegate)
                raise
            record_result(ctx, result, self.delegate)
        except BaseException as cause:
            record_failure(ctx, cause)
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
