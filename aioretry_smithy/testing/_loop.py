"""An event loop whose sleeps and timeouts cost no real time."""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from .._clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

_NAMED_TASKS = 5
"""How many waiting tasks the message of a deadlock names."""


class VirtualTimeLoop(VirtualClock, asyncio.SelectorEventLoop):
    """An event loop whose sleeps and timeouts cost no real time.

    The clock starts at 0.0 and stands still while a task can run. When every task
    waits, it jumps exactly to the next timer: a sleep of 3.0 seconds begun at 0.0
    ends at 3.0. So tests of backoffs, deadlines and open circuits can compare exact
    times. The time of day goes along: timestamps of logs, and what dates of servers are
    compared with. It begins with the real one.

    - If nothing can wake the waiting tasks (no timer, no thread, no ready socket),
      the run ends with a :exc:`RuntimeError` that names them, instead of hanging.
      A timer at infinity counts as none.
    - The loop waits in real time for work in threads (:func:`asyncio.to_thread`,
      ``loop.run_in_executor``) while the clock stands still. No timeout cuts such work;
      it must not itself wait for a timer. Threads started in other ways are unknown to
      the loop.
    - Ready sockets are served before the clock moves. But the loop does not wait for a
      peer that needs real time to answer: it is for tests without sockets. Use
      :class:`ScriptedTransport` in place of a server, and ``async+memory://``, which
      goes by the virtual time, in place of another storage.

    Raises:
        RuntimeError: From the running loop, at a deadlock.

    >>> import asyncio
    >>> from aioretry_smithy.testing import VirtualTimeLoop
    >>> async def main():
    ...     await asyncio.sleep(3600.0)
    ...     return asyncio.get_running_loop().time()
    >>> with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    ...     runner.run(main())
    3600.0
    """

    _scheduled: list[asyncio.TimerHandle]
    _clock_resolution: float

    def __init__(self) -> None:
        super().__init__(_JumpingSelector(self._jump))
        self._thread_calls = 0
        self.began_at: float = time.time()
        self._set_time(0.0)

    def time(self) -> float:
        """Return the virtual time in seconds, 0.0 at the start."""
        return self._virtual_time

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[*_Ts], _T],
        *args: *_Ts,
    ) -> asyncio.Future[_T]:
        """Call ``func`` in a thread; the clock stands still until it has returned."""
        future = super().run_in_executor(executor, func, *args)
        self._thread_calls += 1
        future.add_done_callback(self._thread_call_done)
        return future

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 (asyncio's own signature)
    ) -> None:
        """Wait for the threads of the default executor, however long they take."""
        self._thread_calls += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self._thread_calls -= 1

    def _thread_call_done(self, future: asyncio.Future[_T]) -> None:
        self._thread_calls -= 1

    def _jump(self) -> bool:
        """Move the clock to the next timer; False if a thread has to be waited for."""
        if self._thread_calls:
            return False
        next_timer = self._scheduled[0].when() if self._scheduled else math.inf
        if next_timer == math.inf:
            raise RuntimeError(self._deadlock())
        self._set_time(next_timer)
        return True

    def _set_time(self, now: float) -> None:
        self._virtual_time = now
        # asyncio fires timers due before now + resolution: a fixed resolution would
        # fire early at small times, and at large ones vanish in the sum and never fire.
        self._clock_resolution = math.ulp(now)

    def _deadlock(self) -> str:
        names = sorted(
            f"{task.get_name()} ({getattr(task.get_coro(), '__qualname__', '?')})"
            for task in asyncio.all_tasks(self)
        )
        if len(names) > _NAMED_TASKS:
            names[_NAMED_TASKS:] = [f"{len(names) - _NAMED_TASKS} more"]
        return (
            f"deadlock at virtual time {self._virtual_time}: no timer, thread or "
            f"socket can wake {', '.join(names) or 'the loop'}"
        )


class _JumpingSelector(selectors.DefaultSelector):
    """Serves ready sockets; moves the clock before it waits."""

    def __init__(self, jump: Callable[[], bool]) -> None:
        super().__init__()
        self._jump = jump

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0.0)
        if ready or timeout == 0 or self._jump():
            return ready
        return super().select()
