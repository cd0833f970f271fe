"""Ask a circuit breaker before each request, and report the outcome."""

from __future__ import annotations

from collections.abc import Awaitable
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .._call.client import ClientT, DecoratingClient, HttpClient
from .._call.recording import record_response
from .._call.rounds import FailedAttempt
from .._call.short_lane import LaneStep
from .._errors import bad_argument, unqualified
from .._request.per_key import OneForAll
from .._text import name_of
from .breaker import CircuitBreaker, count_failure, count_success
from .fail_fast_error import FailFastError
from .per_key_decorators import PerKeyDecorators
from .state import CircuitState
from .strategy import CircuitBreakerStrategy, checked_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import aiohttp

    from .._call.context import ClientRequestContext
    from .per_key import CircuitBreakers
    from .state import CircuitPermit

_CLOSED = CircuitState.CLOSED  # members of enumerations are slow to reach


class GuardedCalls(DecoratingClient[ClientT]):
    """Guards calls of any kind by circuit breakers.

    Args:
        delegate: The next client inwards.
        circuit_breakers: Finds the one to ask.
        strategy: Judges outcomes.
        fallback: Called in place of what is refused.
    """

    @unqualified
    def __init__(
        self,
        delegate: ClientT,
        circuit_breakers: CircuitBreakers,
        strategy: CircuitBreakerStrategy,
        fallback: Callable[[ClientRequestContext, Any], Any] | None,
    ) -> None:
        super().__init__(delegate)
        self._circuit_breakers = circuit_breakers
        self._strategy = strategy
        self._fallback = fallback

    @classmethod
    @unqualified
    def new_decorator(
        cls,
        circuit_breaker: CircuitBreaker,
        strategy: CircuitBreakerStrategy | None = None,
        *,
        fallback: Callable[[ClientRequestContext, Any], Any] | None = None,
    ) -> Callable[[ClientT], ClientT]:
        """Return a decorator with one circuit breaker for all requests.

        Use it for a single server: while that fails, all requests stop.

        Args:
            circuit_breaker: The circuit breaker to ask.
            strategy: Decides what counts as a failure;
                :meth:`CircuitBreakerStrategy.on_server_error_status` by default.
            fallback: ``(ctx, request) -> response``, plain or async, called in place
                of a request that the circuit breaker refused. While it runs,
                ``ctx.log.response_cause`` is the :class:`FailFastError`; what it
                raises goes to the caller.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> breaker = CircuitBreaker("orders", circuit_open_window=30.0)
        >>> decorator = CircuitBreakerClient.new_decorator(breaker)
        """
        if not isinstance(circuit_breaker, CircuitBreaker):
            raise bad_argument("circuit_breaker", circuit_breaker, "a CircuitBreaker")
        return cls._decorator(
            OneForAll(circuit_breaker.name, circuit_breaker), strategy, fallback
        )

    @classmethod
    def _decorator(
        cls,
        circuit_breakers: CircuitBreakers,
        strategy: CircuitBreakerStrategy | None,
        fallback: Callable[[ClientRequestContext, Any], Any] | None,
    ) -> Callable[[ClientT], ClientT]:
        if strategy is None:
            strategy = CircuitBreakerStrategy.on_server_error_status()
        if not isinstance(strategy, CircuitBreakerStrategy):
            raise bad_argument("strategy", strategy, "a CircuitBreakerStrategy")
        if fallback is not None and not callable(fallback):
            raise bad_argument("fallback", fallback, "(ctx, request) -> response")

        def decorator(delegate: ClientT) -> Any:
            return cls(delegate, circuit_breakers, strategy, fallback)

        return decorator

    async def execute(self, ctx: ClientRequestContext, request: Any) -> Any:
        """Pass *request* on if its circuit breaker permits it, and report back."""
        delegate: Any = self.delegate
        first = (ctx.parent or ctx)._first_attempt
        permit: CircuitPermit | None
        if first is not None:
            circuit_breaker, permit = first.permits[self]
        else:
            try:
                circuit_breaker = self._circuit_breakers.of(request)
            except Exception as error:
                ctx.log._record_failure(error)
                raise
            if circuit_breaker is None:
                return await delegate.execute(ctx, request)
            permit = circuit_breaker.try_request()
        if permit is None:
            return await self._refuse(circuit_breaker, ctx, request)
        ctx.log._was_refused = False
        try:
            result = await delegate.execute(ctx, request)
        except Exception as cause:
            await self._report(circuit_breaker, permit, ctx, cause)
            raise
        except BaseException:
            circuit_breaker.on_ignored(permit)
            raise
        try:
            await self._report(circuit_breaker, permit, ctx, None)
        except BaseException:
            self._give_up(result)
            raise
        return result

    def _give_up(self, result: Any) -> None:
        """Close what is not handed on after all."""

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

    def _lane_step(self) -> LaneStep | None:
        if not self._strategy._knows_success:
            return None
        find = self._circuit_breakers.quick()
        if find is None:
            return None

        def ask(
            host: str, method: str, now: float
        ) -> tuple[CircuitBreaker, CircuitPermit | None] | None:
            circuit_breaker = find(host, method)
            # A subclass may do more than its state shows.
            if type(circuit_breaker) is not CircuitBreaker:
                return None
            state = circuit_breaker._state
            if state.circuit is not _CLOSED:
                return None
            return circuit_breaker, state.permit

        return LaneStep(ask, count_success)

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        given = self._fallback
        fallback = "" if given is None else f", fallback={name_of(given)}"
        asked = self._circuit_breakers
        label = "circuit_breaker=" if isinstance(asked, OneForAll) else ""
        settings = f"{label}{asked!r}, strategy={self._strategy!r}{fallback}"
        return f"{type(self).__name__}({settings})"

    async def _report(
        self,
        circuit_breaker: CircuitBreaker,
        permit: CircuitPermit,
        ctx: ClientRequestContext,
        cause: Exception | None,
    ) -> None:
        try:
            verdict = self._strategy.should_report_as_success(ctx, cause)
            if not (verdict is True or verdict is False or verdict is None):
                verdict = await checked_verdict(verdict)
        except BaseException as error:
            circuit_breaker.on_ignored(permit)
            ctx.log._record_failure(error)
            raise
        if verdict is None:
            circuit_breaker.on_ignored(permit)
        elif verdict:
            circuit_breaker.on_success(permit)
        else:
            count_failure(circuit_breaker, permit, FailedAttempt.of(ctx, cause))

    async def _refuse(
        self,
        circuit_breaker: CircuitBreaker,
        ctx: ClientRequestContext,
        request: Any,
    ) -> Any:
        ctx.log._was_refused = True
        if self._fallback is None:
            # Not by way of a variable: the error has this frame.
            raise _refusal(circuit_breaker, ctx)
        _refusal(circuit_breaker, ctx)
        try:
            result = self._fallback(ctx, request)
            if isinstance(result, Awaitable):
                result = await result
            record_response(ctx.log, result)
        except BaseException as cause:
            ctx.log._record_failure(cause)
            raise
        return result


class CircuitBreakerClient(GuardedCalls[HttpClient], PerKeyDecorators):
    """Refuses requests while their circuit is open; after Armeria's class of that name.

    Inside a retrying client, as usual, the circuit breaker sees every attempt; outside
    it sees one outcome per call. The response is handed on unread.

    A refused call raises :class:`FailFastError`, or gets what *fallback* returns. A
    cancelled one is not counted. An error of the strategy goes to the caller.

    >>> decorator = CircuitBreakerClient.new_per_host_decorator()
    """

    _serves = "sessions"
    _counterpart = "CircuitBreakerRpcClient"

    def _give_up(self, result: aiohttp.ClientResponse) -> None:
        result.close()


def _refusal(
    circuit_breaker: CircuitBreaker, ctx: ClientRequestContext
) -> FailFastError:
    """Make the error for a refused request, and record it."""
    error = FailFastError(circuit_breaker, circuit_breaker.retry_in)
    ctx.log._record_failure(error)
    return error
