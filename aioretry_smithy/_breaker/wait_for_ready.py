"""Let requests wait at an open circuit: the first of them is the next trial."""

from __future__ import annotations

from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from .._call.closing import unless_closed
from .._call.recorder import begin_after_wait
from .._call.time_limits import tick_of
from .._clock import loop_time
from .._policies.queues import WaitQueue, note_queue, unless_held

if TYPE_CHECKING:
    import asyncio

    from .._call.outcome import Nothing
    from .._context.context import ClientRequestContext
    from .breaker import CircuitBreaker
    from .state import CircuitPermit

Answer: TypeAlias = tuple["CircuitPermit | None"]
"""The answer of the circuit breaker to a request that has waited."""

_PAUSE: Final = 0.1
"""Seconds until the next look at a circuit, after an error in a look."""


class WaitingLine:
    """The requests of one event loop that wait at a circuit, in order of arrival.

    There is one while any wait. It has one timer for the next trial, and one for those
    whose time is up.

    Args:
        circuit: The circuit.
        loop: The event loop.
    """

    __slots__ = ("_circuit", "_queue", "_timer", "loop")

    loop: asyncio.AbstractEventLoop
    """The event loop."""

    def __init__(
        self, circuit: CircuitBreaker, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._circuit = circuit
        self.loop = loop
        self._queue: WaitQueue[Answer] = WaitQueue()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def has_any(self) -> bool:
        """Whether a request waits."""
        return bool(self._queue.waiting)

    async def wait(self, until: float) -> Answer | None:
        """Wait for a permit of an open circuit, in order of arrival.

        Returns:
            The answer of the circuit breaker; None where time ran out, or where there
            is nothing to wait for any more.

        Raises:
            Exception: The circuit breaker has raised it, or a listener of its.
        """
        queue = self._queue
        if not queue.waiting:
            self._wait_for_trial()
        try:
            return await queue.wait(until, partial(give_back, self._circuit))
        finally:
            if not queue.waiting:
                self._end()

    def look(self) -> None:
        """Admit the waiting requests that the circuit allows, then wait for a trial.

        Raises:
            BaseException: A clock of the user's has raised it, or it ends a program.
        """
        try:
            self._serve()
        except BaseException:
            if self.has_any:
                # Nobody else looks for them, and who comes joins them.
                self._look_at(self.loop.time() + _PAUSE)
            raise

    def _serve(self) -> None:
        circuit, queue = self._circuit, self._queue
        while queue.waiting and not self.loop.is_closed():
            state = circuit._state
            if state.window is None:
                if not state.may_be_waited_for:
                    for number in [*queue.waiting]:
                        queue.end(number)
                elif self._seconds_to_trial() > 0:
                    self._wait_for_trial()
                    return
            # A listener may change the circuit meanwhile.
            queue.serve(self._ask)
        self._stop_timer()

    def _ask(self) -> Answer:
        return (self._circuit.try_request(),)

    def _seconds_to_trial(self) -> float:
        trial_at = self._circuit._state.trial_at
        return 0.0 if trial_at is None else trial_at - self._circuit._clock()

    def _wait_for_trial(self) -> None:
        """Look again when the next trial may be granted."""
        loop, trial_at = self.loop, self._circuit._state.trial_at
        now = loop.time()
        if trial_at is None or self._circuit._clock is not loop_time:
            trial_at = now + self._seconds_to_trial()
        # A timer may go off early by a tick, and not again and again until it is time.
        self._look_at(max(trial_at, now + tick_of(loop)))

    def _look_at(self, due: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_at(due, self.look, context=Context())

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _end(self) -> None:
        """Clean up after the last waiting request."""
        self._stop_timer()
        if self._circuit._line is self:
            self._circuit._line = None


def give_back(circuit: CircuitBreaker, answer: Answer | None) -> None:
    """Pass the trial slot of a cancelled request to the next request."""
    permit = None if answer is None else answer[0]
    if permit is not None:
        circuit.on_ignored(permit)


def must_wait(circuit: CircuitBreaker) -> bool:
    """Say whether a new request has to wait behind the waiting requests.

    It need not where there is nothing to wait for.
    """
    state, line = circuit._state, circuit._line
    if not state.may_be_waited_for:
        return False
    if line is not None and line.has_any:
        return True
    return state.trial_at is not None and state.trial_at > circuit._clock()


async def wait_at(
    circuit: CircuitBreaker, loop: asyncio.AbstractEventLoop, until: float
) -> Answer | None:
    """Wait in the queue of a circuit for a permit, as :meth:`WaitingLine.wait` does."""
    line = circuit._line
    if line is None or line.loop is not loop:
        # Those of another loop, which is closed or stands still, can be no trials.
        line = circuit._line = WaitingLine(circuit, loop)
    return await line.wait(until)


class WaitsOfCall:
    """The seconds that a call has waited at circuits, in all its attempts.

    Hedges that wait at the same time count once.
    """

    __slots__ = ("_begun", "_number", "_over")

    def __init__(self) -> None:
        self._over = self._begun = 0.0
        self._number = 0

    def begin(self, now: float) -> float:
        """Begin a wait; return the seconds that the call has waited before."""
        if not self._number:
            self._begun = now
        self._number += 1
        return self._over + now - self._begun

    def end(self, now: float) -> None:
        """End the wait of a request."""
        self._number -= 1
        if not self._number:
            self._over += now - self._begun


async def until_ready(
    ctx: ClientRequestContext, circuit: CircuitBreaker, patience: float
) -> Answer | Literal[Nothing.NOTHING] | None:
    """Wait at an open circuit for some seconds, but not beyond the deadline.

    What the call has waited at circuits before, in other attempts, is part of them. The
    attempt and its time limit begin after that.

    Returns:
        The answer of the circuit breaker; None where it is to be asked as ever, for
        there is nothing to wait for any more. :data:`.NOTHING` where an attempt around
        is the trial by now, so that it need not be asked.

    Raises:
        RuntimeError: The session is closed.
        Exception: The circuit breaker has raised it, or a listener of its.
    """
    call = ctx.call
    loop = call.loop
    started = loop.time()
    waits: WaitsOfCall | None = call.waits_at_circuits
    if waits is None:
        waits = call.waits_at_circuits = WaitsOfCall()
    left = patience - waits.begin(started)
    # That of the attempt has not begun.
    until = started + min(left, call.time_of(call))
    cut = ctx.cut
    if cut is not None:
        cut.follow(loop, call.deadline)
    answer = None
    try:
        if left > 0:
            take_back = partial(give_back, circuit)
            answer = await unless_closed(
                call,
                lambda: unless_held(
                    wait_at(circuit, loop, until), ctx, (circuit,), take_back
                ),
            )
    finally:
        if answer is None:
            note_queue(ctx, started)
        now = loop.time()
        waits.end(now)
        waited = now - started
        if waited > 0:
            begin_after_wait(call, ctx.record, waited, "circuit_breaker")
        if cut is not None:
            cut.follow(loop, ctx.deadline)
    return answer
