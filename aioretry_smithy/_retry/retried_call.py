"""Decide what follows each attempt of one call: a wait, or the end."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .._call.awaited_body import forget_body, tell_of_body, will_read
from .._call.call import Attempt
from .._call.hooks import NOTHING
from .._call.origin import judge_attempt
from .._call.pause import pause
from .._call.recorder import record_failure
from .._call.stop_reason import RetryStopReason
from .._call.time_limits import tick_of
from .._context.context import context_of
from .._context.loop import Ending
from .._failures.kept_cause import drop_frames
from .._failures.raised_answers import hint_in
from .._failures.safety import ran_out
from .._listeners import tell
from .break_off import deadline_passed, record_break, record_stop
from .elsewhere import ELSEWHERE, overrules, without_wait
from .limiter import acquired, notify, report
from .replaced_outcome import ReplacedOutcome, outcome_of
from .wait import AT_ONCE, LATER, NOT_REPLAYABLE, SUCCEEDED, Stop, plan_wait

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Request
    from .._call.record import Record
    from .._context.context import ClientRequestContext
    from .._context.entering import Entered
    from .._context.sender import Sender
    from .call_adapter import CallAdapter
    from .config import RetryConfig
    from .limiter import RetryLimiter
    from .wait import Decision, Wait

_T = TypeVar("_T")


class RetriedCall(Ending):
    """The retries of one call: what follows each attempt, and what ends the call.

    Two subclasses ask for another attempt: a strategy, or one of Smithy's for a token.

    Args:
        sender: What sends its requests.
        call: The call.
        scope: What the retrying client was called for: the call, as a rule.
        request: The request.
        config: The settings of the call.
        adapter: Handles requests and results of the kind of call.
        ignores_success: Whether nobody need be asked about a success.
        is_looked_at: Whether clients inside look at more of an attempt than its record.
    """

    __slots__ = (
        "_earlier_cause",
        "_ignores_success",
        "_is_looked_at",
        "_owes_refund",
        "_permitted",
        "_replaced",
        "_stop",
        "_tick",
        "adapter",
        "attempt",
        "attempts_made",
        "config",
        "refusal",
    )

    cause: Exception | None

    attempt: Scope
    """The attempt under way, or the last one; before the first, the scope."""

    refusal: Exception | None
    """The error with which a Smithy strategy refused another attempt."""

    _earlier_cause: Exception | None
    _replaced: ReplacedOutcome | None

    next_delay: Callable[[], Awaitable[Decision]]
    """Finds out what :meth:`delay_at_once` has put off."""

    admit: Callable[[], Awaitable[float | None]]
    """Waits on until an attempt may begin; returns the seconds, None if too many."""

    may_have_to_wait: ClassVar[bool] = False
    """Whether an attempt may have to wait on, in :meth:`admit`."""

    def __init__(
        self,
        sender: Sender,
        call: Call,
        scope: Scope,
        request: Request,
        config: RetryConfig,
        adapter: CallAdapter,
        ignores_success: bool,
        is_looked_at: bool,
    ) -> None:
        super().__init__(sender, call, scope, request)
        self.config = config
        self.adapter = adapter
        self.attempt = scope
        self._ignores_success = ignores_success
        self._is_looked_at = is_looked_at
        self.attempts_made = 0
        # Whether a retry was paid for that has not begun yet.
        self._owes_refund = False
        # The attempt after which the limiter permitted a retry.
        self._permitted: Scope | None = None
        self._earlier_cause = self.refusal = self._replaced = None
        # Found once: time_left() is asked twice an attempt.
        self._tick = tick_of(call.loop)

    @property
    def ctx(self) -> ClientRequestContext:
        """The context of the attempt, for what the user gave."""
        return context_of(self.call, self.attempt)

    def time_left(self) -> float:
        """Return the seconds before it is too late to begin another attempt."""
        call, scope = self.call, self.scope
        deadline = call.deadline if scope is call else call.deadline_of(scope.record)
        if deadline is None:
            return math.inf
        return deadline - call.loop.time() - self._tick

    async def next_attempt(
        self,
        attempt: Any = None,
        begun: Entered | None = None,
        record: Record | None = None,
        request: Request = None,
    ) -> Attempt | None:
        """Begin an attempt, after a wait; None where the call ends as this."""
        call = self.call
        if call.attempt_began is not None:
            attempt = Attempt.of_call(call, call.attempt_began)
            record = attempt.record
        if begun or self.cause is not None:
            await self.end_attempt(attempt, begun or [], record, request)
        try:
            if attempt is None:
                decision = await self.begin()
            else:
                if not self.attempts_made:  # it has begun without this
                    self.attempt, self.attempts_made = attempt, 1
                decision = self.decide_at_once()
                if decision is LATER:
                    decision = await self.decide()
            while not decision.stops:
                late = None if decision is AT_ONCE else await self.wait(decision)
                if late is None:
                    return self.begin_attempt()
                decision = late
            if self._owes_refund:
                await self.refund()
        except BaseException as error:
            await self.break_off(error)
            raise
        self._end(decision.reason)
        return None

    async def begin(self) -> Decision:
        """Prepare the first attempt."""
        return AT_ONCE

    def begin_attempt(self) -> Attempt:
        """Begin another attempt."""
        call, config, request = self.call, self.config, self.request
        name, header = config.retry_count_header, None
        # Counted over the call: a decorator outside may send it through here twice.
        if name is not None and (sent := call.sent):
            made_before = sent[-1].number - call.resends
            if self._is_looked_at:
                request = self.adapter.with_count(request, name, made_before)
            else:
                header = name, str(made_before)
        self.attempts_made += 1
        self._owes_refund = False
        if config.buffer_response or config.looks_at_content:
            will_read(call)
        self.attempt = new = Attempt(call, request, config.attempt_timeout, header)
        return new

    def decide_at_once(self) -> Decision:
        """Decide what follows an attempt; :data:`.LATER` where that takes a wait."""
        record, config = self.attempt.record, self.config
        record.is_settled = True
        if self.cause is not None:
            if not isinstance(self.cause, Exception):
                raise self.forget()
            judge_attempt(self.call, record, self.cause)
        succeeded = self.succeeded()
        stop = SUCCEEDED if succeeded and self._ignores_success else self.ask_at_once()
        if stop is LATER or config.limiter is not None:
            self._stop = stop
            return LATER
        if stop is not None and (
            succeeded or not overrules(self.call, record, self.cause)
        ):
            return SUCCEEDED if succeeded else stop
        # Otherwise no limit can be reached: neither that of bodies nor of attempts.
        may_end = self.cause is not None or self.call.resources is not None
        may_end |= self.attempts_made >= config.max_total_attempts
        limit = self._limit() if may_end else None
        wait = limit or (self.delay_at_once() if stop is None else ELSEWHERE)
        return wait if wait.stops else self.plan(wait)

    async def decide(self) -> Decision:
        """Decide what follows an attempt, where that takes a wait."""
        stop, limiter = self._stop, self.config.limiter
        if stop is LATER:
            stop = await self.ask()
            tell_of_body(self.call, self.result)
        final = None if overrules(self.call, self.attempt.record, self.cause) else stop
        if limiter is not None:
            await report(limiter, self.ctx, self.cause, wanted=final is None)
            if self._permitted is not None:
                await self._end_retry()
        if final is not None:
            return SUCCEEDED if self.succeeded() else final
        wait = self._limit() or (self.delay_at_once() if stop is None else ELSEWHERE)
        if wait is LATER:
            wait = await self.next_delay()
        if wait.stops:
            return wait
        planned = self.plan(wait)
        self._owes_refund = True
        if limiter is None or planned.stops:
            return planned
        return await self._ask_limiter(limiter, wait)

    def ask_at_once(self) -> Stop | None:
        """Ask as :meth:`ask` does; :data:`.LATER` where that may take a wait."""
        return LATER

    @abstractmethod
    async def ask(self) -> Stop | None:
        """Ask, after an attempt, for another; return why there is none, if so."""

    @abstractmethod
    def delay_at_once(self) -> Decision:
        """Find out how long to wait for the next attempt, or why there is none.

        That is :data:`.LATER` where a subclass has a :meth:`next_delay` to await.
        """

    async def refund(self) -> None:
        """Give back what a retry has cost, because it is not made after all."""
        self._owes_refund = False
        permitted, self._permitted, limiter = self._permitted, None, self.config.limiter
        if limiter is not None and permitted is not None:
            await notify(limiter, limiter.release, context_of(self.call, permitted))

    def plan(self, wait: Wait) -> Decision:
        """Plan a wait as long as the server asks, or stop if time is too short."""
        config, remaining, record = self.config, self.time_left(), self.attempt.record
        asked = self.retry_after() if config.use_retry_after else 0.0
        if record.route is not None:
            wait, asked = without_wait(self.call, record, self.cause, wait, asked)
        return plan_wait(wait, asked, remaining, config, self._tick)

    def retry_after(self) -> float:
        """Return the seconds that the server asks to be left alone, or 0."""
        if self.cause is not None:
            return hint_in(self.cause) or 0.0
        return self.adapter.retry_after(self.result) or 0.0

    def succeeded(self) -> bool:
        """Say whether the last attempt brought a success."""
        status = self.attempt.record.outcome.status
        # A function that has returned has no status.
        return self.result is not NOTHING and (status is None or status < 400)

    def time_out(self) -> Stop:
        """Let the call end with a :class:`.ResponseTimeoutError`."""
        cut, earlier = self.cause, self._earlier_cause
        self.cause = deadline_passed(cut, earlier, self.attempts_made)
        return Stop(RetryStopReason.DEADLINE)

    def was_cut(self) -> bool:
        """Say whether the deadline of the call, and no other limit, cut the attempt."""
        return ran_out(self.cause) and self.time_left() <= 0

    async def read(self, look: Callable[[Any], Awaitable[_T]] | None = None) -> Any:
        """Read what is wanted of a body; where that fails, the attempt has failed."""
        if self.result is NOTHING:
            return None
        whole = self.config.buffer_response
        try:
            return await self.adapter.read(
                self.call, self.attempt, self.result, look, whole=whole
            )
        except Exception as cause:
            self.result, self.cause = NOTHING, cause
        return None

    def forget_earlier(self) -> None:
        """Drop earlier failures: this object is in the frames of what is raised."""
        self._earlier_cause = self.refusal = self._replaced = None

    async def wait(self, wait: Wait) -> Stop | None:
        """Wait for the next attempt; return why there is none after all."""
        call: Call = self.call
        record: Record = self.attempt.record
        # Before its own first attempt a second pass waits after the last one's.
        record = call.sent[-1] if record is call and call.sent else record
        clock, started = call.loop.time, call.loop.time()
        whole = rest = wait.delay
        record.delay, record.delay_source = whole, wait.source
        if wait is ELSEWHERE:
            call.switches += 1
        kept = self._replaced = ReplacedOutcome.of(self, record)
        try:
            if self.result is not NOTHING:
                record.outcome.is_unwanted = True
                releasing = self.adapter.release(self.result, whole, keep=bool(kept))
                if releasing is not None:
                    await releasing
                    rest -= clock() - started
            if self.config.listeners and self.attempts_made:
                await self._tell(whole)
                passed = clock() - started
                rest, whole = whole - passed, max(whole, passed)
                record.delay = whole
            if self.cause is not None:
                drop_frames(self.cause)
                self._earlier_cause = self.cause
            self.result, self.cause = NOTHING, None
            record.delay = whole - await pause(call, rest)
            if self.may_have_to_wait and (held_up := await self.admit()) != 0.0:
                record.delay, record.delay_source = clock() - started, "rate_limit"
                if held_up is None:
                    return self.time_out()
                record.delay = whole + held_up
        except BaseException:
            record.delay = clock() - started
            raise
        if self.attempts_made and self.time_left() <= 0:
            return self.time_out()
        return None

    async def _tell(self, delay: float) -> None:
        """Tell the listeners of a retry; frames that a report has keep no failure."""
        await tell(
            "retrying client",
            self.config.listeners,
            lambda listener: listener.on_retry(self.ctx, self.cause, delay),
        )

    def _end(self, reason: RetryStopReason | None) -> None:
        """Write the outcome into the record of the call."""
        record, reason = outcome_of(self, self.attempt.record, self._replaced, reason)
        tell_of_body(self.call, self.result)
        record_stop(self.call, record, reason, self.refusal)
        if self.cause is not None:
            record_failure(self.call, self.call, self.cause)
        self.forget_earlier()

    async def break_off(self, error: BaseException) -> None:
        """Leave nothing behind when *error* breaks into the call."""
        forget_body(self.call)
        if self.result is not NOTHING:
            self.adapter.close(self.result)
        is_first = self.attempt is self.scope
        record_break(self.call, error, self.cause, self.refusal, is_first=is_first)
        self.result, self.cause = NOTHING, None
        self.forget_earlier()
        await (self.refund() if self._owes_refund else self._end_retry())

    async def _ask_limiter(self, limiter: RetryLimiter, wait: Wait) -> Decision:
        if not await acquired(limiter, self.ctx, self.cause):
            return Stop(RetryStopReason.LIMITER)
        self._permitted = self.attempt
        # It may have taken its time.
        return self.plan(wait)

    def _limit(self) -> Stop | None:
        if self.attempts_made >= self.config.max_total_attempts:
            return Stop(RetryStopReason.MAX_TOTAL_ATTEMPTS)
        is_spent = self.adapter.is_spent(self.call, self.request, self.cause)
        return NOT_REPLAYABLE if is_spent else None

    async def _end_retry(self) -> None:
        """Tell the limiter that the retry that it permitted is over."""
        permitted, self._permitted, limiter = self._permitted, None, self.config.limiter
        if limiter is not None and permitted is not None:
            ctx = context_of(self.call, permitted)
            await notify(limiter, limiter.on_retry_end, ctx)
