"""Report outcomes to a circuit breaker that are judged by content too."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from .._call.recorder import record_failure
from .._context.context import context_of
from .hooks import BreakerGate, report

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Result
    from .._context.context import ClientRequestContext
    from .._dry_run import DryRun
    from .._rules.content_conditions import Content
    from .breaker import CircuitBreaker
    from .content_rule import JudgeOfContent
    from .hooks import AnyFallback
    from .per_key_decorators import CircuitBreakers
    from .state import CircuitPermit

    Permit: TypeAlias = tuple[CircuitBreaker, CircuitPermit]
    Look: TypeAlias = Callable[[Call, Scope, Result, int], Awaitable[Content]]


class ContentBreakerHooks(BreakerGate):
    """Guards requests by circuit breakers that are told what is inside of answers.

    Hooks further in have seen the answer as it came: its body is read here, within the
    attempt.

    Args:
        circuit_breakers: Finds the one to ask.
        judge: Judges outcomes.
        fallback: Called in place of what is refused.
        look: Reads content of a result, up to a number of bytes.
        dry_run: Logs what would be refused, where nothing is.
    """

    __slots__ = ("_judge", "_look")

    def __init__(
        self,
        circuit_breakers: CircuitBreakers,
        judge: JudgeOfContent,
        fallback: AnyFallback | None,
        look: Look,
        dry_run: DryRun | None,
    ) -> None:
        super().__init__(circuit_breakers, fallback, dry_run, needs_attempt=True)
        self._judge = judge
        self._look = look

    async def leave(
        self,
        call: Call,
        scope: Scope,
        permit: Permit,
        result: Result,
        cause: Exception | None,
    ) -> None:
        """Report the outcome; a body that fails is one, and is raised."""
        circuit_breaker, given = permit
        body = _Body(partial(self._look, call, scope, result))
        try:
            verdict = await self._verdict(context_of(call, scope), cause, body)
        except BaseException as error:
            body.failure = None
            circuit_breaker.on_ignored(given)
            record_failure(call, scope.record, error)
            raise
        report(call, scope, permit, body.failure or cause, verdict)
        body.check()

    async def _verdict(
        self, ctx: ClientRequestContext, cause: Exception | None, body: _Body
    ) -> bool | None:
        try:
            return await self._judge.verdict(ctx, cause, body.read)
        except Exception as error:
            if error is not body.failure:
                raise
            # A body has failed that was looked at, which is another question.
            return await self._judge.verdict(ctx, error, body.read)


class _Body:
    """Looks into one result, and keeps how that failed.

    Args:
        look: Reads up to a number of bytes.
    """

    __slots__ = ("_look", "failure")

    failure: Exception | None

    def __init__(self, look: Callable[[int], Awaitable[Content]]) -> None:
        self._look = look
        self.failure = None

    async def read(self, limit: int) -> Content:
        """Return the content, up to so many bytes."""
        try:
            return await self._look(limit)
        except Exception as cause:
            self.failure = cause
            raise

    def check(self) -> None:
        """Raise what reading failed with, and forget it: no cycle."""
        failure, self.failure = self.failure, None
        try:
            if failure is not None:
                raise failure
        finally:
            del failure


async def returned(call: Call, scope: Scope, result: Result, limit: int) -> Content:
    """Return what a function returned, which is its content."""
    return result
