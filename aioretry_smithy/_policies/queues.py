"""Queue calls, first come, first served, and end waits whose time is up."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from contextvars import Context, copy_context
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from .._call.outcome import NOTHING, Nothing
from .._clock import loop_time
from .._context.holdings import fetch_around, is_held
from .._failures.failure import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine

    from .._context.context import ClientRequestContext


class TimedWaits(ABC):
    """Many waits, each of which ends at a time of its own.

    One timer serves all of them: timers that are due at the same time go off in any
    order. There is none while nobody waits.
    """

    __slots__ = ("_due", "_ends", "_timer")

    def __init__(self) -> None:
        # When each ends, by its number. A wait that is over stays in it until then.
        self._ends: list[tuple[float, int]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf

    @abstractmethod
    def end(self, number: int) -> None:
        """End an expired wait, if not over yet."""

    def end_at(self, number: int, until: float) -> None:
        """Schedule the end of a wait, never for ``inf``; later waits number higher."""
        if until < math.inf:
            heappush(self._ends, (until, number))
            self._set_timer()

    def forget_ends(self) -> None:
        """Stop the timer, because nobody waits any more."""
        self._ends.clear()
        self._set_timer()

    def expire(self, due: float) -> None:
        """End the waits that are due."""
        while self._ends and self._ends[0][0] <= due:
            self.end(heappop(self._ends)[1])
        self._set_timer()

    def _set_timer(self) -> None:
        ends, timer = self._ends, self._timer
        due = ends[0][0] if ends else math.inf
        if due == self._due:
            return
        if timer is not None:
            timer.cancel()
        # uvloop's handle does not always know when it is due.
        self._timer, self._due = None, due
        if due < math.inf:
            loop = asyncio.get_running_loop()
            # Two turns of the loop later: a task that wakes at the same time may hand
            # something out, which is still in time.
            soon = loop.call_soon
            self._timer = loop.call_at(due, soon, soon, self.expire, due)


T = TypeVar("T")


class WaitQueue(TimedWaits, Generic[T]):
    """A queue of calls of one event loop, served in order of arrival."""

    __slots__ = ("_numbers", "waiting")

    waiting: OrderedDict[int, tuple[asyncio.Future[T | None], Context]]
    """The calls that wait, by their numbers, with the variables of each."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count()
        self.waiting = OrderedDict()

    def __len__(self) -> int:
        return len(self.waiting)

    async def wait(self, until: float, give_back: Callable[[T], None]) -> T | None:
        """Wait until :meth:`serve` hands something out.

        Args:
            until: When to give up, by the event loop's clock; ``inf`` for never.
            give_back: Takes back a thing handed to a call that is cancelled meanwhile.

        Returns:
            The thing handed out, or None where time ran out.

        Raises:
            Exception: It could not be made.
        """
        number, call = self.join(until)
        try:
            return await call
        except BaseException:
            self.leave(number)
            if call.done() and not call.cancelled() and call.exception() is None:
                given = call.result()
                if given is not None:
                    give_back(given)
            raise
        finally:
            # What is raised has this frame, which must not have it.
            del call

    def join(self, until: float) -> tuple[int, asyncio.Future[T | None]]:
        """Add a call; return its number and the future of its turn."""
        call: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        number = next(self._numbers)
        self.waiting[number] = call, copy_context()
        self.end_at(number, until)
        return number, call

    def leave(self, number: int) -> None:
        """Remove a call from the queue, if still waiting."""
        self.waiting.pop(number, None)
        self._rest()

    def serve(self, make: Callable[[], T]) -> bool:
        """Make a thing for the first call that waits; return False if there is none.

        It is made as part of that call, which has what is raised.
        """
        while self.waiting:
            _, (call, context) = self.waiting.popitem(last=False)
            # A call that is cancelled has not left yet, and one whose loop was closed
            # never does.
            if call.done() or call.get_loop().is_closed():
                continue
            try:
                call.set_result(context.run(make))
            except BaseException as error:
                _fail(call, error)
                if not isinstance(error, Exception):
                    raise
            finally:
                # What is raised has this frame, which must not have it.
                del call, context
            self._rest()
            return True
        self._rest()
        return False

    def end(self, number: int) -> None:
        """Let a call give up that has waited long enough."""
        call, _ = self.waiting.pop(number, (None, None))
        if call is not None and not call.done():
            call.set_result(None)
        self._rest()

    def _rest(self) -> None:
        if not self.waiting:
            self.forget_ends()


def _fail(call: asyncio.Future[T | None], error: BaseException) -> None:
    """Let a call raise an error; what a future cannot raise is wrapped, as in Python.

    The call is not lost, whatever it is.
    """
    if isinstance(error, StopIteration):
        wrapped = RuntimeError("StopIteration was raised for a call that waits")
        wrapped.__cause__ = error
        error = wrapped
    call.set_exception(error)


_T = TypeVar("_T")

_given_up: Final[set[asyncio.Task[Any]]] = set()
"""Abandoned waits that are still in the queues."""


async def unless_held(
    waiting: Coroutine[Any, Any, _T],
    ctx: ClientRequestContext,
    things: Collection[object],
    give_back: Callable[[_T], object],
) -> _T | Literal[Nothing.NOTHING]:
    """Await a wait for things; end it where the attempt around holds one by now.

    That can be where a token is fetched: one who holds it may begin to wait for the
    token. :data:`.NOTHING` is returned then, and the wait has left all its lines.

    Args:
        waiting: The wait.
        ctx: What waits.
        things: What it waits for.
        give_back: Takes back what came as the caller was cancelled.
    """
    fetch = fetch_around()
    if fetch is None:
        return await waiting
    task = asyncio.get_running_loop().create_task(waiting)
    try:
        while not task.done():
            if any(is_held(ctx, each) for each in things):
                return NOTHING
            await fetch.joined_before(task)
    except BaseException:
        if task.done() and not task.cancelled() and task.exception() is None:
            give_back(task.result())
        raise
    else:
        return task.result()
    finally:
        if not (task.done() or task.get_loop().is_closed()):
            _given_up.add(task)
            task.add_done_callback(_given_up.discard)
            task.cancel()
        # What is raised has this frame, which must not have it.
        del task


_E = TypeVar("_E", bound=Exception)

_AT_ONCE: Final = 1e-3
"""Seconds that a refusal without any wait may take."""


def note_queue(ctx: ClientRequestContext, started: float) -> None:
    """Note that a call has waited in a queue since *started*, unless sent at once.

    Retrying clients further out go by that.
    """
    if loop_time() - started > _AT_ONCE:
        ctx.call.has_queued = True


def unsent(error: _E) -> _E:
    """Mark a deadline that ended a wait: no server is blamed."""
    judge(error).queue = "limit"
    return error
