"""Run code in virtual time: tests in an event loop, or a chain through an outage."""

from __future__ import annotations

import asyncio
import contextvars
import math
import selectors
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeVar, TypeVarTuple

from .. import _checks as check
from .._clock import VirtualClock
from .._context.options import UNSET, Unset
from .._errors import bad_argument, is_plain_function
from ._fleet import COMPARED, Chain, Progress, nobody, run_fleet, standard_chain
from ._simulation import (
    Counts,
    SimulatedRun,
    SimulationResult,
    SimulationSettings,
    read_outage,
    read_restart,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor

    Simulation = Callable[
        [SimulationSettings, Progress], Coroutine[object, object, Sequence[Counts]]
    ]


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


_CHAIN = "a function that returns a new SessionBuilder"
_CHAINS = f"{_CHAIN}, or a dict with such functions by name"


def simulate(
    chains: Chain | Mapping[str, Chain] | None = None,
    *,
    clients: int = 50,
    rate: float = 700.0,
    capacity: float = 1000.0,
    outage: tuple[float, float, float] | str | Literal[Unset.UNSET] | None = UNSET,
    restart: tuple[float, float] | str | None = None,
    duration: float = 120.0,
    error_rate: float = 0.0,
    seed: int = 0,
    replicas: int = 1,
    dead: int = 0,
    slow: float = 1.0,
    failing: int = 0,
    progress: Callable[[str, float], object] | None = None,
) -> SimulationResult:
    """Put a chain through an outage or a restart of a simulated server.

    Processes, each with a session of its own, send GET requests through real chains.
    Below the chain a simulated server takes the place of aiohttp. It carries out one
    request after another, even if the client has given up; its queue has no limit.
    With the same seed all calls begin at the same moments, for any chain. The results
    are the same each time, if the chain takes random numbers from :mod:`random` and
    the time from the event loop, as the parts of this library do; of the storages of a
    :class:`~aioretry_smithy.limits.SharedRateLimit` those in memory do.

    To make it quicker, divide *clients*, *rate* and *capacity* by the same number: each
    process then calls as often as before.

    It runs an event loop of its own: inside a running one, call it by
    :func:`asyncio.to_thread`. Nothing is logged meanwhile, and it leaves the state of
    :mod:`random` as it was.

    Args:
        chains: A function that makes a ``SessionBuilder``, called for each
            process; its run is named ``"your chain"``, and ``"plain retries"``, up to
            three without a budget, and ``"no retries"`` are run for comparison. Unless
            given, it is the standard chain, named ``"standard chain"``. All of these
            but yours wait 1 s for an answer. The other two are plain loops, which give
            the same counts as sessions and cost less. Or a dict of such functions by
            name: then only those are run.
        clients: How many processes call, at most 1000000: each takes about 15 kB.
        rate: Calls per second, of all processes together, at most 1000000.
        capacity: Requests per second that the server can carry out.
        outage: When the outage begins, how many seconds it lasts and which part of the
            capacity is left, from 0 to 1; also as text. None for none. Unless given, it
            is ``"10:20:0.2"``, or none beside a restart.
        restart: When the server, or the first of the replicas, goes away, and for how
            many seconds; also as text, ``"10:3"``. It cuts the requests that it has,
            takes no connections, and is back with an empty queue.
        duration: Seconds in which calls begin. Calls under way at the end are finished.
        error_rate: The part of the requests that the server answers with 503.
        seed: The seed of all random numbers.
        replicas: How many servers there are, at most 1000, which have the capacity
            together. The chain of yours has a group of as many endpoints, with URLs of
            their own; the requests of one without a group go to any, by chance, as
            those of plain retries do. The standard chain has a group.
        dead: How many of them take no connections in the outage. Where some are dead,
            failing or slow, the others have all of their capacity, whatever the outage
            says.
        slow: How many times as long one of them takes for a request in the outage.
        failing: How many of them answer 503 at once in the outage.
        progress: A plain function, called once for each simulated second with the name
            of the chain and the part of its time that is over, from 0 to 1.

    Raises:
        ValueError: An argument is not as described.
        RuntimeError: An event loop is running.
        Exception: A chain raised something other than an :class:`aiohttp.ClientError`
            or a :class:`TimeoutError`.

    >>> result = simulate(clients=2, rate=20, capacity=25, outage="2:2:0.2", duration=9)
    >>> for name, run in result.runs.items():
    ...     print(f"{name:15}", run.seconds_to_recover)
    standard chain  2.0
    plain retries   None
    no retries      0.0

    One of three replicas dies, and the calls go to the others:

    >>> result = simulate(
    ...     clients=2, rate=20, capacity=60, outage="2:5:1", duration=9,
    ...     replicas=3, dead=1,
    ... )
    >>> for name, run in result.runs.items():
    ...     print(f"{name:15} {run.success:.0%}")
    standard chain  100%
    plain retries   99%
    no retries      81%
    """
    away = read_restart(restart)
    settings = SimulationSettings(
        clients=clients,
        rate=rate,
        capacity=capacity,
        outage=read_outage(outage, away),
        duration=duration,
        error_rate=error_rate,
        seed=seed,
        replicas=replicas,
        dead=dead,
        slow=slow,
        failing=failing,
        restart=away,
    )
    check.function("progress", progress, "the name of a chain and a number")
    simulations = _by_name(chains, replicas)
    _refuse_running_loop()
    runs: dict[str, SimulatedRun] = {}
    for name, simulation in simulations.items():
        tell = nobody if progress is None else partial(progress, name)
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            # Options and captured logs of the code around are not those of the calls.
            counts = runner.run(
                simulation(settings, tell), context=contextvars.Context()
            )
        runs[name] = SimulatedRun.of(counts, settings)
    return SimulationResult(settings, MappingProxyType(runs))


def _by_name(
    chains: Chain | Mapping[str, Chain] | None, replicas: int
) -> dict[str, Simulation]:
    if chains is None:
        standard = _fleet("standard chain", partial(standard_chain, replicas))
        return {"standard chain": standard, **COMPARED}
    if isinstance(chains, Mapping) and chains:
        for name, chain in chains.items():
            if not is_plain_function(chain):
                raise bad_argument(f"chains[{name!r}]", chain, _CHAIN)
        return {name: _fleet(name, chain) for name, chain in chains.items()}
    if isinstance(chains, Mapping) or not is_plain_function(chains):
        raise bad_argument("chains", chains, _CHAINS)
    return {"your chain": _fleet("your chain", chains), **COMPARED}


def _fleet(name: str, chain: Chain) -> Simulation:
    return partial(run_fleet, f"chains[{name!r}]", chain)


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    message = "simulate() in a running event loop: call it by asyncio.to_thread()"
    raise RuntimeError(message)
