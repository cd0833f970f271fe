"""Decide what follows each attempt of one call: a wait, or the end."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from .._call.call import forget_body, tell_of_body, will_read
from .._call.closing import pause
from .._call.deadline_cut import cut_of, is_cut
from .._call.outcome import NOTHING, PENDING, Request, Result, RetryStopReason
from .._call.recorder import judge_attempt, record_failure
from .._call.time_limits import tick_of, time_left
from .._clock import NEAR
from .._context.context import AttemptContext, ClientRequestContext
from .._failures.failure import failure_of, ran_out
from .._failures.kept_cause import drop_frames
from .._policies.listeners import tell
from .ending import (
    ReplacedOutcome,
    deadline_passed,
    is_spent_body,
    record_break,
    record_stop,
)
from .limiter import RetryLimiter, acquired, notify, report, until_it_waits
from .wait import (
    AT_ONCE,
    ELSEWHERE,
    SUCCEEDED,
    TOO_LATE,
    Decision,
    Stop,
    Wait,
    overrules,
    plan_wait,
    without_wait,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .._call.record import Record
    from .call_adapter import CallAdapter
    from .config import RetryConfig

_T = TypeVar("_T")


class Retries:
    """The retries of a call: decisions after each attempt, and the end of the call.

    Two subclasses ask for another attempt: a strategy, or one of Smithy's for a token.

    It keeps the outcome: variables would keep it alive in frames of a traceback.

    Args:
        ctx: What the retrying client was called for: the call, as a rule.
        request: The request.
        config: The settings of the call.
        adapter: Handles requests and results of the kind of call.
    """

    attempt: ClientRequestContext
    """The attempt under way, or the last one; before the first, the context around."""

    attempts_made: int
    """How many attempts have begun."""

    cause: Exception | None
    """The failure of the last attempt."""

    owes_refund: bool
    """Whether a retry was paid for that has not begun yet."""

    retry_error: Exception | None = None
    """The error with which a Smithy strategy refused another attempt."""

    result: Result
    """The result of the last attempt; :data:`.NOTHING` without one."""

    _earlier_cause: Exception | None = None

    _permitted: ClientRequestContext | None = None
    """The attempt after which the limiter permitted a retry."""

    _replaced: ReplacedOutcome | None

    def __init__(
        self,
        ctx: ClientRequestContext,
        request: Request,
        config: RetryConfig,
        adapter: CallAdapter,
    ) -> None:
        self.ctx = self.attempt = ctx
        self.call = ctx.call
        self.request = request
        self.config = config
        self.adapter = adapter
        self.result = NOTHING
        self.cause = self._replaced = None
        self.attempts_made = 0
        self.owes_refund = False

    @abstractmethod
    def begin(self) -> Any:
        """Return :data:`.AT_ONCE`, or what finds out whether to begin, and awaits."""

    def next_attempt(self) -> AttemptContext:
        """Begin the next attempt."""
        call, config, request = self.call, self.config, self.request
        if call.sent:
            # Over the call: a decorator outside may send it through here twice.
            if (name := config.retry_count_header) is not None:
                made_before = call.sent[-1].number - call.resends
                request = self.adapter.with_count(request, name, made_before)
            self.owes_refund = False
        self.attempts_made += 1
        if config.looks_at_content and not config.buffer_response:
            will_read(call)
        self.attempt = new = AttemptContext(call, request, config.attempt_timeout)
        return new

    async def decide(self) -> Decision:
        """Decide what follows an attempt: a wait for the next one, or the end."""
        if self.config.buffer_response:
            # What did not come from the transport is not read yet.
            await self.read(self.adapter.whole)
        call, limiter = self.call, self.config.limiter
        if self.cause is not None:
            self._judge(self.cause)
        self.attempt.record.is_final = True
        stop = self.ask()
        if stop is not None and not isinstance(stop, Stop):
            stop = await stop
        if call.awaiting_body is not None:
            tell_of_body(call, self.result)
        cause, wait = self.cause, None
        if cause is not None and stop is not None and overrules(self.attempt, cause):
            stop, wait = None, ELSEWHERE
        if limiter is not None:
            telling = report(limiter, self.attempt, cause, wanted=stop is None)
            if telling is not None:
                await telling
            if self._permitted is not None:
                await self._end_retry()
        if stop is not None:
            return SUCCEEDED if self.succeeded() else stop
        return await self._decide_when(wait)

    async def _decide_when(self, known: Wait | None) -> Decision:
        """Decide when to make another attempt, unless a limit forbids it.

        Args:
            known: The wait for it, where that is known already.
        """
        limiter = self.config.limiter
        found = self._limit() or known or self.delay()
        wait = found if isinstance(found, (Wait, Stop)) else await found
        if wait.stops:
            return wait
        planned = self.plan(wait)
        self.owes_refund = True
        if limiter is None or planned.stops:
            return planned
        return await self._ask_limiter(limiter, wait)

    def _judge(self, cause: Exception) -> None:
        """Classify the failure of an attempt, and record it if not recorded yet."""
        if self.attempt.record.outcome is PENDING:
            # A client was patched after the chain was built.
            record_failure(self.attempt, cause)
        judge_attempt(self.attempt, cause)

    @abstractmethod
    def ask(self) -> Awaitable[Stop | None] | Stop | None:
        """Ask the strategy for a further attempt; return the reason to stop, if any."""

    def _limit(self) -> Stop | None:
        """Return why no strategy could have another attempt; None if it could."""
        if self.attempts_made >= self.config.max_total_attempts:
            return Stop(RetryStopReason.MAX_TOTAL_ATTEMPTS)
        is_spent = self.adapter.is_spent(self.call, self.request, self.cause)
        return Stop(RetryStopReason.BODY_NOT_REPLAYABLE) if is_spent else None

    @abstractmethod
    def delay(self) -> Awaitable[Decision] | Decision:
        """Find out how long to wait for the next attempt, or why there is none."""

    def plan(self, wait: Wait) -> Decision:
        """Plan a wait as long as the server asks, or stop if time is too short."""
        config, call = self.config, self.call
        asked = self.retry_after() if config.use_retry_after else 0.0
        if self.attempt.record.route is not None:
            wait, asked = without_wait(self.attempt, self.cause, wait, asked)
        tick = tick_of(call.loop) if asked else 0.0
        planned = plan_wait(wait, asked, self.time_left(), config, tick)
        if config.stop_after_delay is None or planned.stops:
            return planned
        passed = call.loop.time() - call.first.attempt_started
        is_late = passed + planned.delay > config.stop_after_delay + NEAR
        return Stop(RetryStopReason.STOP_AFTER_DELAY) if is_late else planned

    def time_left(self) -> float:
        """Return the seconds left for beginning a further attempt."""
        return time_left(self.call, self.ctx.record)

    def retry_after(self) -> float:
        """Return the seconds that the server asks to wait, or 0."""
        if self.cause is not None:
            return failure_of(self.cause).hint() or 0.0
        return self.adapter.retry_after(self.result) or 0.0

    async def _ask_limiter(self, limiter: RetryLimiter, wait: Wait) -> Decision:
        """Ask for a permit to retry; plan the wait anew once there is one."""
        permit = await acquired(limiter, self.attempt, self.cause)
        if permit is None:
            return TOO_LATE
        if not permit:
            self.call.limiter = limiter._refusal(self.attempt, self.cause)
            return Stop(RetryStopReason.LIMITER)
        self._permitted = self.attempt
        # It may have taken its time.
        return self.plan(wait)

    def succeeded(self) -> bool:
        """Say whether the last attempt brought a success."""
        status = self.attempt.record.outcome.status
        # A function that has returned has no status.
        return self.cause is None and (status is None or status < 400)

    def time_out(self) -> Stop:
        """Let the call end with a :class:`.ResponseTimeoutError`."""
        cut, earlier = self.cause, self._earlier_cause
        self.cause = deadline_passed(cut, earlier, self.attempts_made)
        return TOO_LATE

    def was_cut(self) -> bool:
        """Say whether the deadline of the call, and no other limit, cut the attempt."""
        return ran_out(self.cause) and self.time_left() <= 0

    async def read(self, look: Callable[[Any], Awaitable[_T]]) -> _T | None:
        """Read the wanted part of a body; a failure fails the attempt."""
        if self.result is NOTHING:
            return None
        try:
            return await self.adapter.read(self.attempt, self.result, look)
        except Exception as cause:
            self.result, self.cause = NOTHING, cause
        return None

    def forget_earlier(self) -> None:
        """Drop earlier failures: this object is in the frames of what is raised."""
        self._earlier_cause = self.retry_error = self._replaced = None

    async def wait(self, wait: Wait) -> Decision:
        """Wait for the next attempt; return why there is none after all, if so."""
        if wait is AT_ONCE:
            return wait
        call, record = self.call, self.attempt.record
        if not self.attempts_made and call.sent:
            # Before its own first attempt a second pass waits after the last one's.
            record = call.sent[-1]
        started, seconds = call.loop.time(), wait.delay
        record.delay, record.delay_source = seconds, wait.source
        if wait is ELSEWHERE:
            call.switches += 1
        self._replaced = ReplacedOutcome.of(call, record, self.result, self.cause)
        try:
            leaving, rest = self._leave(record, seconds), seconds
            if leaving is not None:
                await leaving
                passed = call.loop.time() - started
                rest -= passed
                if rest < 0 and self.config.listeners:
                    record.delay = seconds = passed
            self._drop_outcome()
            left = await pause(call, rest)
            if left:
                record.delay = max(0.0, seconds - left)
            admitting = self.admit()
            held_up = 0.0 if admitting is None else await admitting
        except BaseException:
            record.delay = call.loop.time() - started
            raise
        if held_up != 0.0:
            record.delay, record.delay_source = call.loop.time() - started, "rate_limit"
        if held_up is None or (self.attempts_made and self.time_left() <= 0):
            return self.time_out()
        return AT_ONCE

    def _leave(self, record: Record, seconds: float) -> Awaitable[None] | None:
        """Release the last response, and notify the listeners of a retry.

        An awaitable is returned where that takes time.
        """
        releasing = None
        if self.result is not NOTHING:
            record.outcome.is_unwanted = True
            keep = self._replaced is not None
            releasing = self.adapter.release(self.result, seconds, keep=keep)
        if self.config.listeners and self.attempts_made:
            return self._tell(seconds, releasing)
        return releasing

    def _drop_outcome(self) -> None:
        """Drop the outcome of the last attempt, but for its failure."""
        if self.cause is not None:
            drop_frames(self.cause)
            self._earlier_cause = self.cause
        self.result, self.cause = NOTHING, None

    async def _tell(self, delay: float, releasing: Awaitable[None] | None) -> None:
        """Notify the listeners of a retry; frames that a report has keep no failure."""
        if releasing is not None:
            await releasing
        cut = cut_of(self.call)
        if cut is not None:
            # The code around goes on when all are notified.
            cut.held += 1
        try:
            await tell(
                "retrying client",
                self.config.listeners,
                lambda listener: listener.on_retry(self.attempt, self.cause, delay),
            )
        finally:
            if cut is not None:
                cut.held -= 1

    def admit(self) -> Awaitable[float | None] | None:
        """Return an awaitable that waits until an attempt may begin, or None.

        It returns the seconds, None if these are too many.
        """
        return None

    def end(self, reason: RetryStopReason | None) -> Result:
        """End the call with the outcome of the last attempt; return the result.

        Raises:
            Exception: The last attempt failed so.
        """
        record: Record = self.attempt.record
        if self._replaced is not None and is_spent_body(self.cause):
            # It ends as it would have without the attempt.
            record, self.result, self.cause = self._replaced
            reason = RetryStopReason.BODY_NOT_REPLAYABLE
        record_stop(self.call, record, reason, self.retry_error)
        if self.cause is None:
            return self.result
        record_failure(self.call, self.cause)
        self.forget_earlier()
        cause, self.cause = self.cause, None
        try:
            raise cause
        finally:
            # Its traceback has this frame: no cycle.
            del cause

    async def break_off(self, error: BaseException) -> bool:
        """Leave nothing behind when *error* breaks into the call.

        Returns whether that was the deadline, so that the call ends as it says.
        """
        is_late = is_cut(self.call, error)
        forget_body(self.call)
        if self.result is not NOTHING:
            self.adapter.close(self.result)
        is_first = not self.attempts_made
        if self.attempt is not self.ctx and self.attempt.holdings is not None:
            self.attempt.holdings.end()
        if is_late:
            self.time_out()
            self.result = NOTHING
        else:
            record_break(
                self.call, error, self.cause, self.retry_error, is_first=is_first
            )
            self.result, self.cause = NOTHING, None
        self.forget_earlier()
        giving_back = self.refund() if self.owes_refund else self._end_retry()
        if isinstance(error, GeneratorExit):
            # A coroutine that is thrown away must not wait.
            until_it_waits(giving_back)
        else:
            await giving_back
        return is_late

    async def refund(self) -> None:
        """Refund the tokens of a retry that is not made."""
        self.owes_refund = False
        permitted, self._permitted, limiter = self._permitted, None, self.config.limiter
        if limiter is not None and permitted is not None:
            await notify(limiter, limiter.release, permitted)

    async def _end_retry(self) -> None:
        """Notify the limiter that a permitted retry is over."""
        permitted, self._permitted, limiter = self._permitted, None, self.config.limiter
        if limiter is not None and permitted is not None:
            await notify(limiter, limiter.on_retry_end, permitted)
