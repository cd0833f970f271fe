"""Ask a circuit breaker before each request, and report the outcome."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeAlias

from .._call.hooks import PASS, WAIT, Answer, Hooks
from .._call.recorder import record_failure
from .._call.rounds import FailedAttempt
from .._context.context import context_of
from .breaker import count_failure
from .errors import FailFastError
from .strategy import checked_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Request, Result
    from .._context.context import ClientRequestContext
    from .._dry_run import DryRun
    from .breaker import CircuitBreaker
    from .per_key_decorators import CircuitBreakers
    from .state import CircuitPermit
    from .strategy import CircuitBreakerStrategy

    AnyFallback: TypeAlias = Callable[[ClientRequestContext, Request], Any]
    """Answers in place of what is refused, plain or async."""


class BreakerGate(Hooks):
    """Refuses requests while their circuit is open; how outcomes are judged is open.

    Args:
        circuit_breakers: Finds the one to ask.
        fallback: Called in place of what is refused.
        dry_run: Logs what would be refused, where nothing is.
        needs_attempt: Whether more of an attempt is looked at than its record.
    """

    __slots__ = ("_dry_run", "_fallback", "_find", "is_of_endpoint", "needs_attempt")

    def __init__(
        self,
        circuit_breakers: CircuitBreakers,
        fallback: AnyFallback | None,
        dry_run: DryRun | None,
        *,
        needs_attempt: bool,
    ) -> None:
        self._find = circuit_breakers.of
        self.is_of_endpoint = circuit_breakers.is_per_server
        self._fallback = fallback
        self._dry_run = dry_run
        self.needs_attempt = needs_attempt or fallback is not None

    def enter(self, call: Call, scope: Scope, request: Request) -> Any:
        """Return the breaker and its permit; wait for a fallback where it has none."""
        circuit_breaker = self._find(request)
        if circuit_breaker is None:
            return PASS
        permit = circuit_breaker.try_request()
        record = call if scope is call else scope.record
        if permit is not None:
            if record.was_refused:
                record.was_refused = False
            return circuit_breaker, permit
        error = FailFastError(circuit_breaker, circuit_breaker.retry_in)
        if self._dry_run is not None:
            self._dry_run.refused(request, error)
            record.was_refused = False
            # Without a permit there is nothing to report.
            return PASS
        record.was_refused = True
        error.is_of_endpoint = self.is_of_endpoint and request.route is not None
        if self._fallback is not None:
            record_failure(call, record, error)
            return WAIT
        try:
            raise error
        finally:
            # It has this frame, which must not have it.
            del error

    async def admit(self, call: Call, scope: Scope, request: Request) -> Answer:
        """Answer in place of a request that was refused."""
        fallback: Any = self._fallback
        result = fallback(context_of(call, scope), request)
        if isinstance(result, Awaitable):
            result = await result
        return Answer(result, fallback)

    def cancel(
        self,
        call: Call,
        scope: Scope,
        permit: tuple[CircuitBreaker, CircuitPermit],
        cause: BaseException,
    ) -> None:
        """Give the permit back."""
        circuit_breaker, given = permit
        circuit_breaker.on_ignored(given)


class BreakerHooks(BreakerGate):
    """Guards requests by circuit breakers.

    Args:
        circuit_breakers: Finds the one to ask.
        strategy: Judges outcomes.
        fallback: Called in place of what is refused.
        verdicts: What the strategy says of the responses with some statuses.
        dry_run: Logs what would be refused, where nothing is.
    """

    __slots__ = ("_judge", "_verdicts")

    def __init__(
        self,
        circuit_breakers: CircuitBreakers,
        strategy: CircuitBreakerStrategy,
        fallback: AnyFallback | None,
        verdicts: Mapping[int, bool],
        dry_run: DryRun | None = None,
    ) -> None:
        super().__init__(
            circuit_breakers, fallback, dry_run, needs_attempt=not strategy._verdicts
        )
        self._judge = strategy._judge
        self._verdicts = verdicts

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: tuple[CircuitBreaker, CircuitPermit],
        result: Result,
        cause: Exception | None,
    ) -> Awaitable[None] | None:
        """Report the outcome, as the strategy judges it."""
        verdict: object = None
        if cause is None and self._verdicts:
            verdict = self._verdicts.get(result.status)
        if verdict is None:
            try:
                verdict = self._judge(call, scope, cause)
            except BaseException as error:
                permit[0].on_ignored(permit[1])
                record_failure(call, scope.record, error)
                raise
        if verdict is True:
            permit[0].on_success(permit[1])
        elif verdict is False and cause is None:
            # As report() does it, without a look for what broke.
            record = call if scope is call else scope.record
            ended = record.outcome.ended
            failed = call.loop.time() if ended is None else ended
            count_failure(*permit, FailedAttempt(record.started, failed, False))
        elif verdict is False or verdict is None:
            report(call, scope, permit, cause, verdict)
        else:
            return self._report_later(call, scope, permit, cause, verdict)
        return None

    async def _report_later(
        self,
        call: Call,
        scope: Scope,
        permit: tuple[CircuitBreaker, CircuitPermit],
        cause: Exception | None,
        verdict: object,
    ) -> None:
        circuit_breaker, given = permit
        try:
            judged = await checked_verdict(verdict)
        except BaseException as error:
            circuit_breaker.on_ignored(given)
            record_failure(call, scope.record, error)
            raise
        report(call, scope, permit, cause, judged)


def report(
    call: Call,
    scope: Scope,
    permit: tuple[CircuitBreaker, CircuitPermit],
    cause: Exception | None,
    verdict: bool | None,
) -> None:
    """Report an outcome by its verdict; None gives the permit back."""
    circuit_breaker, given = permit
    if verdict is None:
        circuit_breaker.on_ignored(given)
    elif verdict:
        circuit_breaker.on_success(given)
    else:
        record = call if scope is call else scope.record
        failed = FailedAttempt.of(call, record, cause)
        count_failure(circuit_breaker, given, failed)
