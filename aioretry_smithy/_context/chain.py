"""Put decorators around a transport, checked, and find clients in such a chain."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from .._errors import bad_argument, is_ours, is_plain_function
from .._text.mask import DEFAULT_MASK, Mask
from .client import DecoratingClient, ForOneKind, HttpClient, OutcomeRecorder, recorded

if TYPE_CHECKING:
    from .client import RpcClient

    Client: TypeAlias = "HttpClient | RpcClient"


_C = TypeVar("_C")
_D = TypeVar("_D")

_CLIENTS = {"sessions": "HttpClient", "functions": "RpcClient"}


def assemble(
    transport: Client,
    decorators: Iterable[Callable[[Any], Any]],
    serves: Literal["sessions", "functions"],
) -> Any:
    """Put decorators around a transport, the innermost first; return the outermost.

    Args:
        transport: The innermost client.
        decorators: The decorators.
        serves: What the chain is for.

    Raises:
        ValueError: A decorator returns no client, hides the one it wraps, is for the
            other kind of chain or stands inside a client that retries and may not, or
            two clients retry.
    """
    client, may_be_hidden = transport, True
    for decorator in map(checked_decorator, decorators):
        wrapped: object = decorator(client)
        if not isinstance(wrapped, HttpClient):
            expected = f"one that returns an {_CLIENTS[serves]}"
            raise bad_argument("decorator", decorator, expected)
        outermost = chain_of(client)[0]  # without an OutcomeRecorder
        hides = all(link is not outermost for link in chain_of(wrapped))
        if hides and not may_be_hidden:
            name = describe_client(outermost).partition("(")[0]
            expected = (
                "added first, or a client that has the one it wraps as .delegate;"
                f" it hides {name}"
            )
            raise bad_argument("decorator", decorator, expected)
        _check_kind(wrapped, serves)
        # A scripted transport is a decorator that ignores the client it wraps.
        may_be_hidden &= any(wrapped is each for each in (decorator, transport))
        client = recorded(wrapped)
    retrying = [link for link in chain_of(client) if _is_retrying(link)]
    if len(retrying) > 1:
        expected = f"at most one {type(retrying[0]).__name__}"
        raise bad_argument("decorators", len(retrying), expected)
    for link in chain_of(retrying[0])[1:] if retrying else ():
        if isinstance(link, DecoratingClient) and link._stays_outside:
            expected = f"a place around {type(retrying[0]).__name__}, not inside of it"
            raise bad_argument("decorator", type(link).__name__, expected)
    return client


def _check_kind(client: object, serves: str) -> None:
    """Refuse a client that serves chains of the other kind."""
    if isinstance(client, ForOneKind) and client._serves not in {None, serves}:
        other = client._counterpart and f", {client._counterpart}"
        expected = f"a decorator for {serves}{other}"
        raise bad_argument("decorator", type(client).__name__, expected)


def checked_decorator(decorator: _D) -> _D:
    """Return a decorator, checked.

    Raises:
        ValueError: It cannot be called with a client, is a coroutine function, or is a
            class or method that makes a decorator.
    """
    expected = "a function of a client"
    maker = getattr(decorator, "__self__", decorator)
    if isinstance(maker, type) and _is_not_called(decorator, maker):
        expected = f"what {maker.__name__}.new_decorator(...) returns"
        raise bad_argument("decorator", decorator, expected)
    if not is_plain_function(decorator) or _is_policy(decorator):
        if isinstance(decorator, type) or not callable(decorator):
            expected += ", such as RetryingClient.new_decorator(...) returns"
        else:
            expected += "; write @client_decorator above a coroutine function"
        raise bad_argument("decorator", decorator, expected)
    return decorator


def _is_not_called(decorator: object, maker: type) -> bool:
    """Say whether a class of clients was given instead of its decorator."""
    if not (issubclass(maker, DecoratingClient) and hasattr(maker, "new_decorator")):
        return False
    if decorator is not maker:
        return getattr(decorator, "__name__", "").endswith("_decorator")
    # A class that needs settings; a subclass may need none.
    return len(inspect.signature(maker).parameters) > 1


def _is_policy(decorator: object) -> bool:
    """Say whether a class of this library, or derived from one, is no client."""
    return (
        isinstance(decorator, type)
        and not hasattr(decorator, "execute")
        and any(is_ours(each.__module__) for each in decorator.__mro__)
    )


def check_inside(name: str, delegate: Client, *, repeats: bool = False) -> None:
    """Refuse a client of that *name* outside of a client that retries.

    If it *repeats* requests itself, around one that has no place inside of that either.

    Raises:
        ValueError: There is one further in.
    """
    for link in chain_of(delegate):
        is_outer = isinstance(link, DecoratingClient) and link._stays_outside
        if not (sends_again(link) or (repeats and is_outer)):
            continue
        expected = f"a place inside of {type(link).__name__}, not around it"
        raise bad_argument("decorator", name, expected)


def check_attempt_timeout(
    client: Client, response_timeout: Callable[[], float | None]
) -> None:
    """Refuse a chain whose attempts may take longer than its calls.

    A limit that nobody has chosen contradicts none: a call has the shorter one.
    """
    config = getattr(retrying_client(client), "config", None)
    if getattr(config, "has_usual_attempt_timeout", False):
        return
    attempt: float | None = getattr(config, "attempt_timeout", None)
    limit = None if attempt is None else response_timeout()
    if limit is not None and attempt is not None and attempt > limit:
        expected = f"<= response_timeout, {limit}"
        raise bad_argument("attempt_timeout", attempt, expected)


def check_origin(client: Client, base: object) -> None:
    """Refuse a chain that needs the session's own origin if the session has none.

    Args:
        client: The outermost client.
        base: What relative URLs are joined to; None where there is nothing.
    """
    for link in chain_of(client) if base is None else ():
        if isinstance(link, DecoratingClient) and link._needs_origin:
            expected = (
                f"the hosts that {type(link).__name__} acts on, since the session has"
                " neither base_url nor a group"
            )
            raise bad_argument("hosts", None, expected)


def chain_of(client: Client) -> list[HttpClient]:
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


def find_client(client: Client, wanted: type[_C]) -> _C | None:
    """Return the outermost client of a class in a chain, or None."""
    return next((link for link in chain_of(client) if isinstance(link, wanted)), None)


def retrying_client(client: Client) -> Any:
    """Return the client of a chain that retries, or None."""
    return next((link for link in chain_of(client) if _is_retrying(link)), None)


def _is_retrying(client: object) -> bool:
    return isinstance(client, DecoratingClient) and client._is_retrying


def sends_again(client: object) -> bool:
    """Say whether a client, apart from those inside, may send a request again."""
    return isinstance(client, DecoratingClient) and client._sends_again


def mask_of(client: Client) -> Mask:
    """Return a mask for the usual secrets, and for those that a chain names."""
    wanted = (getattr(link, "mask", None) for link in chain_of(client))
    masks = (mask for mask in wanted if isinstance(mask, Mask))
    return reduce(or_, masks, DEFAULT_MASK)


def describe_client(client: Client) -> str:
    """Return a one-line description of a client: ``describe()``, or its class."""
    describe = getattr(client, "describe", None)
    return type(client).__name__ if describe is None else str(describe())
