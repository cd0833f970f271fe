"""Put chains through an outage, in virtual time."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from .._context.context import UNSET, Unset
from .._errors import bad_argument, is_plain_function
from .._policies.conditions import check_function
from ._fleet import COMPARED, Chain, Progress, nobody, run_fleet, standard_chain
from ._loop import VirtualTimeLoop
from ._simulation import (
    SimulatedRun,
    SimulationResult,
    SimulationSettings,
    read_outage,
    read_restart,
)

if TYPE_CHECKING:
    from ._simulation import Counts

    Simulation = Callable[
        [SimulationSettings, Progress], Coroutine[object, object, Sequence[Counts]]
    ]

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
    check_function("progress", progress, "the name of a chain and a number")
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
