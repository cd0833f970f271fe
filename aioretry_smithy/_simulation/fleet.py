"""Put many processes with the same chain through one simulation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, TypeAlias

from .._errors import bad_argument
from .._session.builder import SessionBuilder
from .isolation import chance, isolated
from .process import SimulatedProcess
from .server import SimulatedServer

if TYPE_CHECKING:
    from .settings import SimulationSettings

Chain: TypeAlias = Callable[[], SessionBuilder]
"""Makes the builder of one process; nothing in it is shared with another one."""


async def run_fleet(
    name: str, chain: Chain, settings: SimulationSettings
) -> list[SimulatedProcess]:
    """Run the processes, and return them with their counts.

    The clock of the running loop must be virtual and begin at 0.0. The calls come at
    the same moments for any chain.

    Args:
        name: What *chain* is called in an error.
        chain: Called for each process.
        settings: The numbers.

    Raises:
        ValueError: *chain* returns no builder, or the same one twice.
        Exception: The chain has raised what is no failure of a request.
    """
    server = SimulatedServer(settings, chance(settings.seed, 1).random)
    async with AsyncExitStack() as stack:
        stack.enter_context(isolated(settings.seed))
        processes: list[SimulatedProcess] = []
        for builder in _builders(name, chain, settings.clients):
            process = SimulatedProcess(builder, server)
            stack.push_async_callback(process.session.close)
            processes.append(process)
        await _make_calls(processes, settings)
    return processes


def _builders(name: str, chain: Chain, many: int) -> list[SessionBuilder]:
    builders: list[SessionBuilder] = []
    for _ in range(many):
        builder: object = chain()
        if not isinstance(builder, SessionBuilder) or builder in builders[:1]:
            # Processes with one builder would share a budget and circuit breakers.
            raise bad_argument(f"{name}()", builder, "a new SessionBuilder each time")
        builders.append(builder)
    return builders


async def _make_calls(
    processes: list[SimulatedProcess], settings: SimulationSettings
) -> None:
    """Begin calls at random, each in some process, and wait until the last ends."""
    loop = asyncio.get_running_loop()
    arrivals = chance(settings.seed, 0)
    try:
        async with asyncio.TaskGroup() as calls:
            while True:
                await asyncio.sleep(arrivals.expovariate(settings.rate))
                if loop.time() >= settings.duration:
                    break
                process = processes[int(arrivals.random() * len(processes))]
                calls.create_task(process.call())
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
