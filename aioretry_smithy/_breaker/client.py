"""Refuse requests while a circuit is open: one of all, or of a host, method or path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import _checks as check
from .._bodies.response_content import read_head_of
from .._call.deadline_cut import until_deadline
from .._call.outcome import NOTHING, Request, Result
from .._call.recorder import record_failure
from .._call.servers import has_untried
from .._call.time_limits import time_left
from .._context.client import ClientT, DecoratingClient, Decorator, HttpClient
from .._context.holdings import holdings_of, is_held
from .._context.recording import close_result, record_result
from .._errors import bad_argument, unqualified
from .._policies.listeners import DryRun
from .._policies.queues import unsent
from .._request.keys import (
    OneForAll,
    PerKey,
    host_and_method_key,
    host_and_path_key,
    host_key,
    method_key,
    other_host_key,
)
from .._text.printable import name_of
from .breaker import CircuitBreaker, FailFastError
from .strategy import AnyJudge, CircuitBreakerStrategy, JudgeOfContent, Looking
from .wait_for_ready import must_wait, until_ready

if TYPE_CHECKING:
    import aiohttp

    from .._context.context import ClientRequestContext
    from .._policies.conditions import Content
    from .._request.request import HttpRequest
    from .state import CircuitPermit

    AnyFallback: TypeAlias = Callable[[ClientRequestContext, Request], Any]
    """Answers in place of what is refused, plain or async."""


CircuitBreakerFactory: TypeAlias = Callable[[str], CircuitBreaker]
CircuitBreakers: TypeAlias = OneForAll[CircuitBreaker] | PerKey[CircuitBreaker]


Fallback: TypeAlias = Callable[
    ["ClientRequestContext", "HttpRequest"],
    "aiohttp.ClientResponse | Awaitable[aiohttp.ClientResponse]",
]


class CommonCircuitBreakerClient(DecoratingClient[ClientT]):
    """Guards calls of any kind by circuit breakers.

    Args:
        delegate: The next client inwards.
        circuit_breakers: Finds the one to ask.
        strategy: Judges outcomes.
        fallback: Called in place of what is refused.
        dry_run: Logs what would be refused, where nothing is.
        wait_for_ready: Seconds that requests wait at an open circuit; None for none.
    """

    @unqualified
    def __init__(
        self,
        delegate: ClientT,
        circuit_breakers: CircuitBreakers,
        strategy: AnyJudge,
        fallback: AnyFallback | None,
        dry_run: DryRun | None = None,
        wait_for_ready: float | None = None,
    ) -> None:
        super().__init__(delegate)
        self._circuit_breakers = circuit_breakers
        self._strategy = strategy
        self._fallback = fallback
        self._dry_run = dry_run
        self._wait_for_ready = wait_for_ready
        self._good_statuses = strategy._good_statuses
        self._look = read_head_of if self._serves == "sessions" else _returned

    async def execute(self, ctx: ClientRequestContext, request: Request) -> Any:
        """Ask the circuit breaker, send the request, and report the outcome."""
        try:
            breaker = self._circuit_breakers.of(request)
            if breaker is not None and breaker._state.window is None:
                breaker, permit = await self._ask_open(ctx, request, breaker)
            else:
                permit = None if breaker is None else breaker.try_request()
        except BaseException as error:
            record_failure(ctx, error)
            raise
        if breaker is None or permit is None:
            return await self._go_without(ctx, request, breaker)
        ctx.record.was_refused = False
        if permit.is_trial:
            holdings_of(ctx).add(breaker)
        try:
            try:
                result = await self.delegate.execute(ctx, request)
            except Exception as cause:
                await self._report(ctx, breaker, permit, None, cause)
                raise
            except BaseException:
                breaker.on_ignored(permit)
                raise
            try:
                record = ctx.record
                is_good = record.outcome.status in self._good_statuses
                if is_good and not record.endpoint_changed:
                    breaker.on_success(permit)
                else:
                    await self._report(ctx, breaker, permit, result)
            except BaseException:
                close_result(ctx, result)
                raise
        finally:
            if permit.is_trial:
                ctx.holdings.remove(breaker)
        return result

    async def _ask_open(
        self, ctx: ClientRequestContext, request: Request, breaker: CircuitBreaker
    ) -> tuple[CircuitBreaker | None, CircuitPermit | None]:
        """Ask an open circuit, possibly waiting; return the circuit and its permit.

        None in its place where the request is to go out without a permit: in a trial,
        whose outcome counts for the circuit, or where a wait is not enforced.
        """
        if is_held(ctx, breaker):
            return None, None
        # Its listeners are part of the attempt.
        holdings_of(ctx)
        patience = self._patience_for(ctx, breaker)
        if patience is None:
            return breaker, breaker.try_request()
        if self._dry_run is not None:
            seconds = min(patience, breaker.retry_in or 0.0)
            self._dry_run.waited(request, seconds, breaker.name)
            return None, None
        answer = await until_ready(ctx, breaker, patience)
        if answer is NOTHING:
            return None, None
        return breaker, breaker.try_request() if answer is None else answer[0]

    def _patience_for(
        self, ctx: ClientRequestContext, breaker: CircuitBreaker
    ) -> float | None:
        """Return how long to wait at most; None where a request is answered at once."""
        is_answered = self._fallback is not None or (
            self._circuit_breakers.is_per_server and has_untried(ctx)
        )
        return None if is_answered or not must_wait(breaker) else self._wait_for_ready

    async def _go_without(
        self,
        ctx: ClientRequestContext,
        request: Request,
        breaker: CircuitBreaker | None,
    ) -> Any:
        """Send a request without asking a circuit breaker, or refuse the request."""
        try:
            if breaker is not None:
                if self._dry_run is None:
                    return await self._refuse(ctx, request, breaker)
                self._dry_run.refused(request, FailFastError(breaker, breaker.retry_in))
        except BaseException as error:
            record_failure(ctx, error)
            raise
        # A decorator outside may have sent it here before, and it was refused then.
        ctx.record.was_refused = False
        return await self.delegate.execute(ctx, request)

    async def _refuse(
        self, ctx: ClientRequestContext, request: Request, breaker: CircuitBreaker
    ) -> Any:
        """Raise that the circuit is open, or answer with the fallback."""
        error = FailFastError(breaker, breaker.retry_in)
        is_per_server = self._circuit_breakers.is_per_server
        error.is_of_endpoint = is_per_server and request.route is not None
        ctx.record.was_refused = True
        if self._wait_for_ready is not None and time_left(ctx.call) <= 0:
            unsent(error)
        fallback = self._fallback
        if fallback is None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame: no cycle
        record_failure(ctx, error)
        result = fallback(ctx, request)
        if isinstance(result, Awaitable):
            result = await until_deadline(ctx, result, raises=True)
        record_result(ctx, result, fallback)
        return result

    async def _report(
        self,
        ctx: ClientRequestContext,
        breaker: CircuitBreaker,
        permit: CircuitPermit,
        result: Result,
        cause: Exception | None = None,
    ) -> None:
        """Report an outcome by the verdict of the strategy."""
        if ctx.record.endpoint_changed and self._circuit_breakers.is_per_server:
            # The outcome is that of another endpoint.
            breaker.on_ignored(permit)
            return
        looking = Looking(partial(self._look, ctx, result))
        try:
            judged = self._strategy.verdict_on(ctx, cause, looking)
            verdict = judged if isinstance(judged, bool) else await judged
        except BaseException as error:
            if isinstance(error, Exception) and looking.has_failed:
                # The attempt has failed with its body, which is another question.
                await self._report(ctx, breaker, permit, None, error)
            else:
                breaker.on_ignored(permit)
                record_failure(ctx, error)
            raise
        if verdict:
            breaker.on_success(permit)
        elif verdict is None:
            breaker.on_ignored(permit)
        else:
            breaker._reported = ctx, cause
            try:
                breaker.on_failure(permit)
            finally:
                breaker._reported = None

    @classmethod
    @unqualified
    def new_decorator(
        cls,
        circuit_breaker: CircuitBreaker,
        strategy: AnyJudge | None = None,
        *,
        fallback: AnyFallback | None = None,
        enforce: bool = True,
        wait_for_ready: float | None = None,
    ) -> Callable[[ClientT], ClientT]:
        """Return a decorator with one circuit breaker for all requests.

        Use it for a single server: while that fails, all requests stop.

        Args:
            circuit_breaker: The circuit breaker to ask.
            strategy: Decides what counts as a failure: a
                :class:`CircuitBreakerStrategy` or rules, also with content;
                :meth:`CircuitBreakerStrategy.on_server_error_status` by default.
            fallback: ``(ctx, request) -> response``, plain or async, called in place
                of a request that the circuit breaker refused. While it runs,
                ``ctx.log.response_cause`` is the :class:`FailFastError`; what it
                raises goes to the caller.
            enforce: False: count, decide and tell listeners as ever, but refuse
                nothing, also in FORCED_OPEN, and call no *fallback*. What would have
                been refused is logged, and its outcome is not counted.
            wait_for_ready: Seconds, finite and > 0, that a call waits at open circuits
                for a trial to close them, over all its attempts, before each of these
                begins; its deadline may end the wait sooner. First come, first served:
                the first that waits is the next trial. Where a trial fails they wait
                on, and when the circuit closes all go on at once. A request does not
                wait, and one that waits no longer does, if the last failure that was
                counted was a timeout or took a second or more, or in FORCED_OPEN; nor
                where there is a *fallback*, or another endpoint to ask. None: fail at
                once.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> breaker = CircuitBreaker("orders", circuit_open_window=30.0)
        >>> decorator = CircuitBreakerClient.new_decorator(breaker)
        """
        check.kind("circuit_breaker", circuit_breaker, CircuitBreaker)
        one = OneForAll(circuit_breaker.name, circuit_breaker)
        return cls._decorator(one, strategy, fallback, enforce, wait_for_ready)

    @classmethod
    def _decorator(
        cls,
        circuit_breakers: CircuitBreakers,
        strategy: AnyJudge | None,
        fallback: AnyFallback | None,
        enforce: bool,
        wait_for_ready: float | None,
    ) -> Callable[[ClientT], ClientT]:
        if strategy is None:
            strategy = CircuitBreakerStrategy.on_server_error_status()
        if not isinstance(strategy, CircuitBreakerStrategy | JudgeOfContent):
            expected = "a CircuitBreakerStrategy or a rule"
            raise bad_argument("strategy", strategy, expected)
        if fallback is not None and not callable(fallback):
            raise bad_argument("fallback", fallback, "(ctx, request) -> response")
        check.positive("wait_for_ready", wait_for_ready, or_none=True)
        dry_run = DryRun.unless(enforce, _owner(circuit_breakers))

        def decorator(delegate: ClientT) -> Any:
            return cls(
                delegate, circuit_breakers, strategy, fallback, dry_run, wait_for_ready
            )

        return decorator

    @property
    def circuit_breakers(self) -> Mapping[str, CircuitBreaker]:
        """The circuit breakers in use by their keys, as of now, for health pages.

        The key of the one given to :meth:`new_decorator` is its name.

        >>> decorator = CircuitBreakerClient.new_decorator(CircuitBreaker("orders"))
        >>> breakers = decorator(ScriptedTransport([])).circuit_breakers
        >>> {key: breaker.state.value for key, breaker in breakers.items()}
        {'orders': 'closed'}
        """
        return MappingProxyType(self._circuit_breakers.in_use())

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        given = self._fallback
        fallback = "" if given is None else f", fallback={name_of(given)}"
        asked = self._circuit_breakers
        label = "circuit_breaker=" if isinstance(asked, OneForAll) else ""
        enforce = "" if self._dry_run is None else ", enforce=False"
        settings = f"{label}{asked!r}, strategy={self._strategy!r}{fallback}{enforce}"
        patience = self._wait_for_ready
        wait = "" if patience is None else f", wait_for_ready={patience!r}"
        return f"{type(self).__name__}({settings}{wait})"


async def _returned(ctx: ClientRequestContext, result: Result, limit: int) -> Content:
    """Return the result of a function in place of content."""
    return result


def _owner(circuit_breakers: CircuitBreakers) -> str:
    """Name the circuit breaker, or the factory of several, for a warning."""
    if isinstance(circuit_breakers, OneForAll):
        return f"circuit breaker {circuit_breakers.key!r}"
    return f"circuit breaker ({circuit_breakers!r})"


def circuit_breakers_per(
    per: str,
    key: Callable[[HttpRequest], str | None],
    factory: CircuitBreakerFactory | None,
) -> CircuitBreakers:
    """Return the circuit breakers that a factory makes, by default plain ones."""
    make = CircuitBreaker if factory is None else factory
    return PerKey(per, key, make, make, CircuitBreaker)


class CircuitBreakerClient(CommonCircuitBreakerClient[HttpClient]):
    """Refuses requests while their circuit is open; after Armeria's class of that name.

    Inside a retrying client, as usual, the circuit breaker sees every attempt; outside
    it sees one outcome per call. The response is handed on unread.

    A refused call raises :class:`FailFastError`, or gets what *fallback* returns. A
    cancelled one is not counted. An error of the strategy goes to the caller.

    >>> decorator = CircuitBreakerClient.new_per_host_decorator()
    """

    _serves = "sessions"
    _counterpart = "CircuitBreakerRpcClient"

    @classmethod
    @unqualified
    def new_per_host_decorator(
        cls,
        factory: CircuitBreakerFactory | None = None,
        strategy: AnyJudge | None = None,
        *,
        fallback: Fallback | None = None,
        enforce: bool = True,
        wait_for_ready: float | None = None,
    ) -> Decorator:
        """Return a decorator with a circuit breaker for each host and port.

        All sessions built with the decorator share the circuit breakers. The 1024 most
        recently used are kept. A URL without a host goes through unasked.

        Args:
            factory: Makes the circuit breaker of a key, such as ``example.com:443``;
                by default ``CircuitBreaker(key)``.
            strategy: As for :meth:`CircuitBreakerClient.new_decorator`.
            fallback: As for :meth:`CircuitBreakerClient.new_decorator`.
            enforce: As for :meth:`CircuitBreakerClient.new_decorator`.
            wait_for_ready: As for :meth:`CircuitBreakerClient.new_decorator`.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> def breaker(key):
        ...     return CircuitBreaker(key, minimum_request_threshold=5)
        >>> decorator = CircuitBreakerClient.new_per_host_decorator(breaker)
        """
        per_key = circuit_breakers_per("host", host_key, factory)
        return cls._decorator(per_key, strategy, fallback, enforce, wait_for_ready)

    @classmethod
    @unqualified
    def new_per_method_decorator(
        cls,
        factory: CircuitBreakerFactory | None = None,
        strategy: AnyJudge | None = None,
        *,
        fallback: Fallback | None = None,
        enforce: bool = True,
        wait_for_ready: float | None = None,
    ) -> Decorator:
        """Return a decorator with a circuit breaker for each method.

        Otherwise as :meth:`new_per_host_decorator`; a key is ``GET``.

        >>> decorator = CircuitBreakerClient.new_per_method_decorator()
        """
        per_key = circuit_breakers_per("method", method_key, factory)
        return cls._decorator(per_key, strategy, fallback, enforce, wait_for_ready)

    @classmethod
    @unqualified
    def new_per_host_and_method_decorator(
        cls,
        factory: CircuitBreakerFactory | None = None,
        strategy: AnyJudge | None = None,
        *,
        fallback: Fallback | None = None,
        enforce: bool = True,
        wait_for_ready: float | None = None,
    ) -> Decorator:
        """Return a decorator with a circuit breaker for each host, port and method.

        Otherwise as :meth:`new_per_host_decorator`; a key is ``example.com:443#GET``.

        >>> decorator = CircuitBreakerClient.new_per_host_and_method_decorator()
        """
        per_key = circuit_breakers_per("host and method", host_and_method_key, factory)
        return cls._decorator(per_key, strategy, fallback, enforce, wait_for_ready)

    @classmethod
    @unqualified
    def new_per_path_decorator(
        cls,
        factory: CircuitBreakerFactory | None = None,
        strategy: AnyJudge | None = None,
        *,
        fallback: Fallback | None = None,
        enforce: bool = True,
        wait_for_ready: float | None = None,
    ) -> Decorator:
        """Return a decorator with a circuit breaker for each host, port and path.

        Use it for a server where one path may fail while others work. Where paths
        have identifiers in them, such as ``/orders/17``, few requests share a circuit
        breaker, and it may never open: take :meth:`new_per_host_decorator` there.

        Otherwise as :meth:`new_per_host_decorator`; a key is
        ``example.com:443/orders``, without the query.

        >>> decorator = CircuitBreakerClient.new_per_path_decorator()
        """
        per_key = circuit_breakers_per("host and path", host_and_path_key, factory)
        return cls._decorator(per_key, strategy, fallback, enforce, wait_for_ready)


def breaker_per_other_host(
    factory: CircuitBreakerFactory,
    strategy: CircuitBreakerStrategy,
    *,
    enforce: bool,
    wait_for_ready: float | None = None,
) -> Decorator:
    """Return a decorator with a circuit breaker per host, but none for endpoints.

    A group leaves those alone that fail; a breaker would refuse what it has chosen.
    """
    others = circuit_breakers_per("host outside of the group", other_host_key, factory)
    return CircuitBreakerClient._decorator(
        others, strategy, None, enforce, wait_for_ready
    )
