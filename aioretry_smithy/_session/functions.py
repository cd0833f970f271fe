"""Decorate a function, and make its calls; the decorators for functions."""

from __future__ import annotations

import asyncio
import functools
import inspect
from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias, TypeVar, Unpack

from .. import _checks as check
from .._breaker.client import CommonCircuitBreakerClient
from .._call.call import Call, CallDefaults
from .._call.deadline_cut import cut_of
from .._call.recorder import end_call, note_request, record_failure, record_return
from .._call.time_limits import TimeLimits, time_left
from .._context.chain import assemble, check_attempt_timeout, mask_of, retrying_client
from .._context.client import DecoratingClient, RpcClient, RpcDecorator
from .._context.context import CallContext, ClientRequestContext
from .._context.options import (
    UNSET,
    EnclosingAttempt,
    RequestOptions,
    Unset,
    apply_options,
    current_options,
    leave_attempt,
)
from .._errors import ResponseTimeoutError, bad_argument, checked_name, warn_caller
from .._log.request_log import annotate
from .._logging.client import CommonLoggingClient
from .._request.request import RpcRequest
from .._retry.call_adapter import RPC
from .._retry.client import CommonRetryingClient
from .._retry.config import RetryConfig, RetryConfigMapping, retries_are_off
from .._retry.ending import call_inside, is_given_up
from .._retry.strategy import asks_for_idempotence

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from .._context.context import ClientRequestContext
    from .._retry.config import SharedSettings, Strategy


class OneAttempt(DecoratingClient[RpcClient]):
    """Runs a call as a single attempt, without retries."""

    async def execute(self, ctx: ClientRequestContext, request: RpcRequest) -> object:
        """Call the function, as an attempt."""
        return await attempted(self.delegate, ctx, request)


async def attempted(
    delegate: RpcClient, ctx: ClientRequestContext, request: RpcRequest
) -> object:
    """Make an attempt: end it at its deadline, and let the calls inside be part of it.

    It stands right inside a retrying client; where nothing retries, outside of all.
    """
    timeout, deadline, around = None, ctx.deadline, cut_of(ctx.call)
    if around is not None:
        around.held += 1
    if deadline is not None:
        timeout = ctx.cut = AttemptTimeout(ctx.call.loop, deadline)
    enclosing = EnclosingAttempt(ctx)
    token = enclosing.enter()
    try:
        return await delegate.execute(ctx, request)
    except BaseException as cause:
        # The limit of a decorator; the function's own client has named the rest.
        error = _limit_error(ctx, cause)
        if error is None:
            raise
        try:
            record_failure(ctx, error)
            raise error from cause
        finally:
            # Its traceback has this frame: no cycle.
            del error
    finally:
        ctx.cut = None
        enclosing.end()
        leave_attempt(token)
        if timeout is not None:
            timeout.end()
        if around is not None:
            around.held -= 1


class FunctionClient:
    """Calls the function at the end of its chain, and records the outcome.

    Args:
        function: The coroutine function.
    """

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Awaitable[object]]) -> None:
        self._function = function

    async def execute(self, ctx: ClientRequestContext, request: RpcRequest) -> object:
        """Call the function with the arguments of *request*, if there is time.

        Where a decorator has set a limit and there was none, it ends with the function.

        Raises:
            ResponseTimeoutError: There is none: nothing begins after a deadline.
        """
        call, record = ctx.call, ctx.record
        try:
            self._begin(ctx, request)
            result = await self._function(*request.args, **request.kwargs)
        except BaseException as cause:
            error = _limit_error(ctx, cause)
            try:
                record_failure(ctx, error or cause)
                if error is None:
                    raise
                raise error from cause
            finally:
                # Its traceback has this frame: no cycle.
                del error
        finally:
            timeout: AttemptTimeout | None = ctx.cut
            if timeout is not None and timeout.is_of_function:
                ctx.cut = None
                timeout.end()
        record_return(call, record)
        return result

    def _begin(self, ctx: ClientRequestContext, request: RpcRequest) -> None:
        """Begin a call of the function, with its deadline."""
        call, record = ctx.call, ctx.record
        timeout: AttemptTimeout | None = ctx.cut
        if request is not ctx.request or record.sent_request is not None:
            note_request(ctx, request)
        deadline, loop = ctx.deadline, call.loop
        if timeout is not None:
            timeout.follow(loop, deadline)
        if deadline is not None:
            if time_left(call, record) <= 0:
                if timeout is not None:
                    timeout.is_named = True
                raise _error_of(TimeLimits.of(ctx))
            if timeout is None:
                ctx.cut = timeout = AttemptTimeout(loop, deadline)
                timeout.is_of_function = True
        # The function may send anything.
        record.was_sent = True


class AttemptTimeout:
    """Cancels the task of an attempt at its deadline, as :func:`asyncio.timeout` does.

    The cancellation is taken back when the attempt has ended, in any way.
    So ``cancelling()`` is as before, and one from outside is no timeout.

    Args:
        loop: The event loop.
        deadline: When.
    """

    is_of_function = False
    """Whether it ends with the function, because only a decorator has set a limit."""

    is_named = False
    """Whether the error of the limit was raised, to avoid a second error."""

    _has_cancelled = False

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        task = asyncio.current_task()
        if task is None:
            message = "a function with a time limit runs in a task"
            raise RuntimeError(message)
        self._task: asyncio.Task[object] = task
        self._before = task.cancelling()
        self._deadline: float | None = deadline
        self._handle = loop.call_at(deadline, self._cancel)

    def _cancel(self) -> None:
        self._has_cancelled = True
        self._task.cancel()

    def follow(self, loop: asyncio.AbstractEventLoop, deadline: float | None) -> None:
        """Cancel at a deadline that was moved."""
        if deadline != self._deadline and not self._has_cancelled:
            self._handle.cancel()
            self._deadline = deadline
            if deadline is not None:
                self._handle = loop.call_at(deadline, self._cancel)

    def has_ended(self, cause: BaseException, limits: TimeLimits) -> bool:
        """Say whether a limit ended the attempt, and its error is not raised yet.

        A call inside has no more time than the attempt, so where its deadline ends it,
        that may be the limit of the attempt.
        """
        if self.is_named:
            return False
        if isinstance(cause, asyncio.CancelledError):
            is_ours = self._has_cancelled and asyncio.current_task() is self._task
            # Cancelled from outside as well, in that very moment, it is not.
            return is_ours and not self._take_back()
        return _is_out_of_time(cause) and limits.passed() is not None

    def end(self) -> None:
        """Leave no timer and no cancellation behind."""
        self._handle.cancel()
        if self._has_cancelled:
            self._take_back()
        # The frames of the error have this object, and the task has the frames.
        del self._task

    def _take_back(self) -> bool:
        """Undo our own cancellation; say whether others are pending."""
        self._has_cancelled = False
        return self._task.uncancel() > self._before


def _limit_error(ctx: ClientRequestContext, cause: BaseException) -> Exception | None:
    """Return the error for a limit that ended an attempt, or None."""
    timeout: AttemptTimeout | None = ctx.cut
    limits = TimeLimits.of(ctx)
    if timeout is None or not timeout.has_ended(cause, limits):
        return None
    timeout.is_named = True
    return _error_of(limits)


def _is_out_of_time(cause: BaseException) -> bool:
    # Calls that a task group makes at once end at once.
    if isinstance(cause, BaseExceptionGroup):
        return all(map(_is_out_of_time, cause.exceptions))
    return isinstance(cause, ResponseTimeoutError)


def _error_of(limits: TimeLimits) -> Exception:
    # A limit may have been moved since.
    make_error = limits.passed() or ResponseTimeoutError
    return make_error()


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
    check.positive("response_timeout", response_timeout, or_none=True)
    if idempotent is not UNSET:
        check.boolean("idempotent", idempotent)
    options = RequestOptions(
        response_timeout=response_timeout, idempotent=idempotent is True
    )
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


def _is_decorated(decorator: object) -> bool:
    """Say whether a function was given where a decorator is expected."""
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
        apply_options(call, options)
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


class CircuitBreakerRpcClient(CommonCircuitBreakerClient[RpcClient]):
    """Refuses calls of a function while the circuit is open.

    It is :class:`CircuitBreakerClient` for the functions of :func:`rpc`. A function
    that returns is a success, unless a strategy of your own judges otherwise. After
    Armeria's ``CircuitBreakerRpcClient``.

    >>> decorator = CircuitBreakerRpcClient.new_decorator(CircuitBreaker("reports"))
    """

    _serves = "functions"
    _counterpart = "CircuitBreakerClient"


class LoggingRpcClient(CommonLoggingClient[RpcClient]):
    """Writes a line for the request and a line for the response of each call.

    It is :class:`LoggingClient` for the functions of :func:`rpc`: the lines have the
    name of the call in place of its URL, neither its arguments nor what it returns. A
    success is a function that returned. After Armeria's ``LoggingRpcClient``.

    >>> decorator = LoggingRpcClient.new_decorator()
    """

    _serves = "functions"
    _counterpart = "LoggingClient"


class RetryingRpcClient(CommonRetryingClient[RpcClient]):
    """Retries a function while its strategy asks for a further attempt.

    It is :class:`RetryingClient` for the functions of :func:`rpc`: the same loop and
    the same settings but those that concern HTTP. What a function returns is a success,
    unless a :class:`RetryStrategyWithContent`, which gets it as ``content``, wants
    another attempt. An attempt is cut at its timeout by cancelling the function; the
    next one starts when that has cleaned up. After Armeria's ``RetryingRpcClient``.

    A failure that a retrying client further in has given up on is not retried again,
    unless a rule names exactly its class, or a strategy of your own wants it.

    Args:
        delegate: The next client inwards.
        config: The settings of all calls, or a mapping that finds those of each.
    """

    _serves = "functions"
    _counterpart = "RetryingClient"
    _adapter = RPC

    def _attempt(self, ctx: ClientRequestContext, request: RpcRequest) -> Any:
        """Make an attempt with its deadline."""
        return attempted(self.delegate, ctx, request)

    @classmethod
    def _check_config(cls, name: str, config: object) -> None:
        """Refuse settings that concern HTTP alone."""
        super()._check_config(name, config)
        if isinstance(config, RetryConfigMapping):
            _check_key(name, config)
        elif isinstance(config, RetryConfig) and config.buffer_response:
            expected = "one without buffer_response, which is only for sessions"
            raise bad_argument(name, config, expected)

    @classmethod
    def new_decorator(
        cls,
        strategy: Strategy | RetryConfig | RetryConfigMapping,
        max_total_attempts: int | Literal[Unset.UNSET] = UNSET,
        attempt_timeout: float | Literal[Unset.UNSET] | None = UNSET,
        **settings: Unpack[SharedSettings],
    ) -> RpcDecorator:
        """Make a decorator for :func:`rpc`.

        Args:
            strategy: Decides after each attempt; or a whole :class:`RetryConfig`, or
                what :meth:`RetryConfigMapping.of` returns.
            max_total_attempts: As for :class:`RetryConfig`.
            attempt_timeout: Seconds that one attempt of the function may take, with the
                decorators further in.
            settings: The other arguments of :class:`RetryConfig`, by name, without
                ``buffer_response`` and ``retry_count_header``. By default the scope of
                a Smithy strategy is the name of the call.

        Raises:
            ValueError: An argument is out of range or concerns HTTP alone, there is
                none of that name, or there are settings beside a whole configuration or
                a mapping.

        >>> decorator = RetryingRpcClient.new_decorator(
        ...     RetryRule(exceptions=[ConnectionError], on_timeout=True),
        ...     max_total_attempts=3,
        ...     attempt_timeout=2.0,
        ... )
        """
        given: dict[str, object] = {**settings}
        for name in ("buffer_response", "retry_count_header"):
            if name in given:
                raise bad_argument(name, given[name], "only for sessions")
        if isinstance(strategy, RetryConfig | RetryConfigMapping):
            cls._check_config("strategy", strategy)
        return cls._new_decorator(
            strategy, max_total_attempts, attempt_timeout, settings
        )

    @classmethod
    def new_mapped_decorator(cls, mapping: RetryConfigMapping) -> RpcDecorator:
        """Make a decorator that retries each call by the settings for its key.

        Args:
            mapping: What :meth:`RetryConfigMapping.of` returns. It is asked once per
                call.

        Raises:
            ValueError: *mapping* is something else.

        >>> decorator = RetryingRpcClient.new_mapped_decorator(
        ...     RetryConfigMapping.of(
        ...         lambda ctx, request: str(request.args[0]),
        ...         lambda region: RetryConfig.standard(max_total_attempts=2),
        ...     )
        ... )
        """
        _check_key("mapping", mapping)
        return cls._decorator(mapping)


def _check_key(name: str, mapping: object) -> None:
    # The other keys are those of HTTP.
    if not isinstance(mapping, RetryConfigMapping) or mapping._name != "of":
        raise bad_argument(name, mapping, "what RetryConfigMapping.of returns")
