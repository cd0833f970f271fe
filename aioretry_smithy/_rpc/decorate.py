"""Put decorators around a coroutine function."""

from __future__ import annotations

import functools
import inspect
from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias, TypeVar

from .._call.call import CallDefaults
from .._call.recorder import end_call
from .._context.client import assemble, check_attempt_timeout, mask_of, retrying_client
from .._context.context import (
    UNSET,
    CallContext,
    RequestOptions,
    Unset,
    begin_call,
    current_options,
)
from .._errors import bad_argument, checked_name, is_finite
from .._log.notes import annotate
from .._meant import warn_caller
from .._request.request import RpcRequest
from .._retry.config import RetryConfig, retries_are_off
from .._retry.given_up import call_inside, is_given_up
from .._retry.strategy import asks_for_idempotence
from .attempt import FunctionClient, OneAttempt

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from .._call.call import Call
    from .._context.client import RpcDecorator

_P = ParamSpec("_P")
_T = TypeVar("_T")

CoroutineFunction: TypeAlias = "Callable[_P, Coroutine[Any, Any, _T]]"
"""A function that is written with ``async def``."""


def rpc(
    *decorators: RpcDecorator,
    response_timeout: float | None = None,
    name: str | None = None,
    idempotent: bool | Literal[Unset.UNSET] = UNSET,
) -> Callable[[CoroutineFunction[_P, _T]], CoroutineFunction[_P, _T]]:
    """Decorate a coroutine function: retry calls, limit their time, log them.

    Use it for operations of several requests, and for clients that are not HTTP. A call
    inside an attempt, through a decorated session or another such function, is part of
    that attempt: it has no more time, and its log is among the ``calls`` of the
    attempt's log. After Armeria's ``RpcClient`` and its decorators.

    Args:
        decorators: The decorators, from the innermost to the outermost, such as what
            :meth:`RetryingRpcClient.new_decorator` returns.
        response_timeout: Seconds that a call may take, with all its attempts, finite
            and > 0; None for no limit.
        name: The name of the call in logs; the qualified name of the function unless
            given.
        idempotent: Whether the function may do its work twice. If not, as unless given,
            :meth:`RetryStrategy.failsafe` calls it again only after a failure that
            surely came before anything was sent; unless given, that is a
            :class:`RuntimeWarning`.

    Raises:
        ValueError: An argument is not as described, a decorator is for sessions, there
            are two retrying clients, an attempt may take longer than the call, or what
            is decorated is no coroutine function.

    >>> @rpc(
    ...     CircuitBreakerRpcClient.new_decorator(CircuitBreaker("reports")),
    ...     RetryingRpcClient.new_decorator(
    ...         RetryRule(exceptions=[KeyError], on_timeout=True), attempt_timeout=3.0
    ...     ),
    ...     response_timeout=10.0,
    ... )
    ... async def fetch_report(session, day):
    ...     async with session.get(f"/reports/{day}") as response:
    ...         return await response.json()
    """
    for decorator in decorators:
        if _is_decorated(decorator):
            expected = (
                "decorators; write @rpc() with parentheses above a function, and"
                " @client_decorator above one that decorates"
            )
            raise bad_argument("decorators", decorator, expected)
    options = _checked_options(response_timeout, idempotent)
    if name is not None:
        checked_name(name)

    def decorate(function: CoroutineFunction[_P, _T]) -> CoroutineFunction[_P, _T]:
        _check(function)
        calls = _Calls(function, decorators, name, options)
        if idempotent is UNSET:
            calls.warn_of_failsafe()

        @functools.wraps(function)
        async def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            answer: _T = await calls.make(args, kwargs)
            return answer

        return call

    return decorate


def _checked_options(seconds: object, idempotent: object) -> RequestOptions:
    if not (seconds is None or (is_finite(seconds) and seconds > 0)):
        raise bad_argument("response_timeout", seconds, "finite and > 0, or None")
    if idempotent is not UNSET and not isinstance(idempotent, bool):
        raise bad_argument("idempotent", idempotent, "True or False")
    return RequestOptions(response_timeout=seconds, idempotent=idempotent is True)


def _is_decorated(decorator: object) -> bool:
    """Say whether a function stands in the place of a decorator."""
    return (
        inspect.iscoroutinefunction(decorator)
        or inspect.isasyncgenfunction(decorator)
        or isinstance(decorator, staticmethod | classmethod)
    )


def _check(function: object) -> None:
    if inspect.iscoroutinefunction(function):
        return
    expected = "a coroutine function, written with async def and without yield"
    if isinstance(function, staticmethod | classmethod):
        kind = type(function).__name__
        expected = f"a coroutine function; write @{kind} above @rpc(...)"
    raise bad_argument("function", function, expected)


def _name_of(function: object) -> str:
    # A partial function has no name of its own, nor has a mock.
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__qualname__", type(function).__qualname__)


class _Calls:
    """Makes the calls of one function."""

    __slots__ = ("_client", "_config", "_defaults", "_options", "_request")

    def __init__(
        self,
        function: CoroutineFunction[..., object],
        decorators: tuple[RpcDecorator, ...],
        name: str | None,
        options: RequestOptions,
    ) -> None:
        client = assemble(FunctionClient(function), decorators, "functions")
        check_attempt_timeout(client, lambda: _seconds(options))
        retrying = retrying_client(client)
        self._client = OneAttempt(client) if retrying is None else client
        self._defaults = CallDefaults(mask_of(client), no_retries=retries_are_off())
        self._config: object = getattr(retrying, "config", None)
        self._options = options
        self._request = RpcRequest(name or _name_of(function))

    def warn_of_failsafe(self) -> None:
        """Warn if hardly any failure is retried, because nobody said which may be."""
        config = self._config
        if (
            isinstance(config, RetryConfig)
            and config.max_total_attempts > 1
            and asks_for_idempotence(config.strategies)
        ):
            warn_caller(
                f"{self._request.name}: RetryStrategy.failsafe() calls a function again"
                " only if surely nothing was sent, unless it may do its work twice."
                " Write rpc(..., idempotent=True) if it may, or name the failures to"
                " retry: RetryRule(exceptions=[...], on_timeout=True)."
                " idempotent=False says that this is meant"
            )

    async def make(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function through its chain."""
        call = self._begin(args, kwargs)
        try:
            result = await self._client.execute(call, call.request)
        except BaseException as cause:
            try:
                _annotate(call, cause)
            finally:
                end_call(call, cause)
            raise
        end_call(call)
        return result

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallContext:
        """Begin a call, with the options of the blocks around it."""
        request = self._request.called_with(args, kwargs)
        around, options = current_options(), self._options
        if around is not None:
            options = around.within(options)
        loop, timeout = get_running_loop(), _seconds(options)
        call = CallContext(request, loop, timeout, self._defaults)
        call.brings_response = False
        begin_call(call, options)
        return call


def _seconds(options: RequestOptions) -> float | None:
    seconds = options.response_timeout
    return None if seconds is UNSET else seconds


def _annotate(call: Call, cause: BaseException) -> None:
    # The call itself has them where no retrying client of ours makes the attempts.
    places = [call, *call.sent[-1:]]
    inside = [call_inside(each, cause) for each in places]
    call.gave_up_inside = any(is_given_up(each, cause) for each in places)
    annotate(call, cause, keep=any(inside))
