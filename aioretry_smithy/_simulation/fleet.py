"""Put many processes with the same chain through one simulation."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from .._endpoints.group import EndpointGroup
from .._errors import bad_argument
from .._session.builder import SessionBuilder
from .process import LONGEST, PATIENCE, PlainLoop, SimulatedProcess
from .replicas import SimulatedReplicas
from .server import SimulatedServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .settings import SimulationSettings

Chain: TypeAlias = Callable[[], SessionBuilder]
"""A factory for the builder of one process, without state shared by processes."""

Progress: TypeAlias = Callable[[float], object]
"""Receives the progress, from 0 to 1."""


def nobody(done: float) -> None:
    """Discard the progress."""


async def run_fleet(
    name: str, chain: Chain, settings: SimulationSettings, progress: Progress = nobody
) -> list[SimulatedProcess]:
    """Run the processes, and return them with their counts.

    The clock of the running loop must be virtual and begin at 0.0. The calls come at
    the same moments for any chain.

    Args:
        name: What *chain* is called in an error.
        chain: Called for each process.
        settings: The numbers.
        progress: Is called once a second.

    Raises:
        ValueError: *chain* returns no builder, or the same one twice.
        Exception: The chain has raised what is no failure of a request.
    """
    replicas = _replicas(settings)
    async with AsyncExitStack() as stack:
        stack.enter_context(isolated(settings.seed))
        processes: list[SimulatedProcess] = []
        first: SessionBuilder | None = None
        for _ in range(settings.clients):
            # Ctrl-C is heard in between.
            await asyncio.sleep(0)
            builder: object = chain()
            if not isinstance(builder, SessionBuilder) or builder is first:
                # Processes with one builder would share a budget and circuit breakers.
                expected = "a new SessionBuilder each time"
                raise bad_argument(f"{name}()", builder, expected)
            first = first or builder
            process = SimulatedProcess(builder, replicas)
            stack.push_async_callback(process.session.close)
            processes.append(process)
        await _make_calls(processes, settings, progress)
    # Ctrl-C while they closed.
    await asyncio.sleep(0)
    return processes


async def run_loop(
    max_total_attempts: int, settings: SimulationSettings, progress: Progress = nobody
) -> list[PlainLoop]:
    """Simulate the same calls with plain retry loops; one stands for all processes."""
    with isolated(settings.seed):
        loop = PlainLoop(max_total_attempts, _replicas(settings))
        await _make_calls([loop], settings, progress)
        # Its last calls end, which takes no real time.
        await asyncio.sleep(LONGEST)
    return [loop]


def _replicas(settings: SimulationSettings) -> SimulatedReplicas:
    """Make the servers; their errors come alike, whoever calls."""
    errors = chance(settings.seed, 1).random
    numbers = range(settings.replicas)
    servers = [SimulatedServer(settings, errors, number) for number in numbers]
    return SimulatedReplicas(servers, chance(settings.seed, 3).random)


async def _make_calls(
    processes: Sequence[SimulatedProcess | PlainLoop],
    settings: SimulationSettings,
    progress: Progress,
) -> None:
    """Begin calls at random, each in some process, and wait until the last ends."""
    loop = asyncio.get_running_loop()
    arrivals = chance(settings.seed, 0)
    second = 0.0
    try:
        async with asyncio.TaskGroup() as calls:
            while True:
                await asyncio.sleep(arrivals.expovariate(settings.rate))
                now = loop.time()
                if now >= settings.duration:
                    break
                if now >= second:
                    progress(now / settings.duration)
                    second = now + 1.0
                process = processes[int(arrivals.random() * len(processes))]
                process.begin(calls)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    progress(1.0)


def chance(seed: int, stream: int) -> random.Random:
    """Make a source of random numbers, a different one for each *stream*."""
    return random.Random(f"{seed} {stream}")


@contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Seed the chance that all chains share, and log nothing, until the block ends."""
    state, disabled = random.getstate(), logging.root.manager.disable
    random.setstate(chance(seed, 2).getstate())
    logging.disable()
    try:
        yield
    finally:
        random.setstate(state)
        logging.disable(disabled)


def standard_chain(replicas: int = 1) -> SessionBuilder:
    """Make the standard chain; of a group, where there are replicas."""
    urls = [f"http://{number}.server.example" for number in range(1, replicas + 1)]
    group = EndpointGroup.of(*urls) if replicas > 1 else None
    return SessionBuilder.standard(group, attempt_timeout=PATIENCE, logging=None)


COMPARED = {"plain retries": partial(run_loop, 4), "no retries": partial(run_loop, 1)}
"""Put up to three retries without a budget, and none, through a simulation."""
