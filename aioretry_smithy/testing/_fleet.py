"""Put many processes with one chain, and servers, through a simulation."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from errno import ECONNREFUSED
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import aiohttp
from yarl import URL

from .._bodies.response_content import new_response
from .._endpoints.group import EndpointGroup
from .._errors import bad_argument
from .._policies.backoff import Backoff
from .._request.request import HttpRequest
from .._session.builder import SessionBuilder
from .._session.deadline import limit_of
from .._session.install import send_with
from ._simulation import Counts, SimulationSettings

if TYPE_CHECKING:
    from aiohttp.typedefs import StrOrURL


class SimulatedReplicas:
    """Interchangeable servers of a simulation."""

    def __init__(
        self,
        servers: Sequence[SimulatedServer],
        chance: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.servers = servers
        self._chance = chance

    def any(self) -> int:
        """Return the number of a random server, like a load balancer."""
        number = len(self.servers)
        return int(self._chance() * number) if number > 1 else 0


REFUSED: Final = 0
"""In place of a status: the server takes no connections."""

CUT: Final = -1
"""A pseudo status: the server exits while processing the request."""


class SimulatedServer:
    """A server with one queue, without a limit.

    Like most servers, it also carries out requests whose client has given up.
    Of several the first ones are dead in an outage, the next ones fail, and one more is
    slow. The first one restarts.
    """

    def __init__(
        self, settings: SimulationSettings, chance: Callable[[], float], number: int = 0
    ) -> None:
        start, length, share = settings.outage or (0.0, 0.0, 1.0)
        self._slow_from, self._slow_until = start, start + length
        self._usual = settings.capacity / settings.replicas
        self._in_outage: int | None = None
        if settings.has_trouble:
            bad = settings.dead + settings.failing
            share = 1 / settings.slow if number == bad else 1.0
            if number < bad:
                self._in_outage = REFUSED if number < settings.dead else 503
        self._slow = self._usual * share
        restarts = settings.restart if number == 0 else None
        away_from, away_for = restarts or (math.inf, 0.0)
        self._away_from, self._back_at = away_from, away_from + away_for
        self._error_rate = settings.error_rate
        self._chance = chance
        self._free_at = 0.0

    def serve(self, now: float) -> tuple[int, float]:
        """Return what the answer to a request will be, and when it will be ready.

        That is a status, :data:`REFUSED` or :data:`CUT`.
        """
        if self._away_from <= now < self._back_at:
            return REFUSED, now
        status = self._in_outage
        if status is not None and self._slow_from <= now < self._slow_until:
            return status, now
        if now >= self._back_at:
            # It begins with an empty queue.
            self._free_at, self._away_from, self._back_at = now, math.inf, math.inf
        self._free_at = self._end_of_one(max(now, self._free_at))
        if self._free_at > self._away_from:
            return CUT, self._away_from
        status = 503 if self._chance() < self._error_rate else 200
        return status, self._free_at

    def _end_of_one(self, begin: float) -> float:
        """Return when one request is served that begins to be served at a time."""
        end = self._slow_until
        if not self._slow_from <= begin < end:
            return begin + 1.0 / self._usual
        done = (end - begin) * self._slow  # of that request, when the outage ends
        return begin + 1.0 / self._slow if done >= 1 else end + (1 - done) / self._usual


PATIENCE = 1.0
"""Seconds that each attempt waits for an answer."""

LONGEST = 60.0
"""More seconds than any call takes, with all its attempts and delays."""


class SimulatedProcess(Counts):
    """One client of the server: a process with a session of its own.

    Raises:
        ValueError: There are not as many endpoints as servers, or they have no URLs of
            their own.
    """

    def __init__(self, builder: SessionBuilder, replicas: SimulatedReplicas) -> None:
        super().__init__()
        self._replicas = replicas
        # The longest first: one may be the beginning of another.
        self._bases: list[tuple[int, str]] = []
        self._known: dict[str, int] = {}
        group = builder._group
        if group is None:
            base_url = URL(builder._base_url or "http://server.example")
            self._url = str(base_url.join(URL("/")))
        else:
            self._url, number = "/", len(replicas.servers)
            bases = [str(URL(each.url)) for each in group.endpoints]
            if not len({*bases}) == len(bases) == number:
                expected = "endpoints with URLs of their own, as many as replicas"
                raise bad_argument("group", group, f"{expected}, {number}")
            numbered = enumerate(bases)
            self._bases = sorted(numbered, key=lambda each: -len(each[1]))
        self.session = builder.build()
        send_with(self.session, self.request)

    def begin(self, calls: asyncio.TaskGroup) -> None:
        """Begin a call."""
        calls.create_task(self.call())

    async def call(self) -> None:
        """Make a call."""
        second = int(asyncio.get_running_loop().time())
        self.calls[second] += 1
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self.session.get(self._url) as response:
                self.answered[second] += response.status < 400

    async def request(
        self, method: str, url: StrOrURL, **arguments: Any
    ) -> aiohttp.ClientResponse:
        """Stand in for the method of the session that sends a request."""
        now = asyncio.get_running_loop().time()
        number = self.replica_of(str(url))
        self.by_replica[number, int(now)] += 1
        status, ready_at = self._replicas.servers[number].serve(now)
        if status == REFUSED:
            raise _refused(URL(url))
        timeout = arguments.get("timeout", self.session.timeout)
        limit = limit_of(getattr(timeout, "total", timeout))
        if limit is not None and ready_at - now > limit:
            self.late[int(now)] += status != CUT
            await asyncio.sleep(limit)
            raise TimeoutError
        await asyncio.sleep(ready_at - now)
        if status == CUT:
            raise aiohttp.ServerDisconnectedError
        return new_response(HttpRequest(method, url, **arguments), status)

    def replica_of(self, url: str) -> int:
        """Return the number of the replica that gets a request."""
        if not self._bases:
            return self._replicas.any()
        number = self._known.get(url)
        if number is None:
            found = (number for number, base in self._bases if url.startswith(base))
            number = self._known[url] = next(found)
        return number


def _refused(url: URL) -> aiohttp.ClientConnectorError:
    """Make the error of a server that takes no connections."""
    # All of a key that the error shows.
    key: Any = SimpleNamespace(host=url.host, port=url.port, ssl=True)
    refusal = ConnectionRefusedError(ECONNREFUSED, "Connect call failed")
    return aiohttp.ClientConnectorError(key, refusal)


class PlainLoop(Counts):
    """Sends a request up to so many times, after exponential delays with full jitter.

    The counts are those of a retrying client without a budget in a session, at a
    fraction of the cost, because a retry storm is hundreds of thousands of attempts.
    Its calls share nothing, so that one stands for any number of processes.
    """

    def __init__(self, max_total_attempts: int, replicas: SimulatedReplicas) -> None:
        super().__init__()
        self._max_total_attempts = max_total_attempts
        self._replicas = replicas
        self._backoff = Backoff.exponential(0.1, 20.0).with_full_jitter()
        self._loop = asyncio.get_running_loop()

    def begin(self, calls: asyncio.TaskGroup) -> None:
        """Begin a call."""
        second = int(self._loop.time())
        self.calls[second] += 1
        self._attempt(second, 1)

    def _attempt(self, second: int, number: int) -> None:
        now = self._loop.time()
        replica = self._replicas.any()
        self.by_replica[replica, int(now)] += 1
        status, ready_at = self._replicas.servers[replica].serve(now)
        if ready_at - now > PATIENCE:
            self.late[int(now)] += status != CUT
            self._loop.call_at(now + PATIENCE, self._fail, second, number)
        elif REFUSED < status < 400:
            self.answered[second] += 1
        else:
            self._loop.call_at(ready_at, self._fail, second, number)

    def _fail(self, second: int, number: int) -> None:
        if number < self._max_total_attempts:
            delay = self._backoff.next_delay(number) or 0.0
            self._loop.call_later(delay, self._attempt, second, number + 1)


Chain: TypeAlias = Callable[[], SessionBuilder]
"""A factory for the builder of one process, without state shared by processes."""

Progress: TypeAlias = Callable[[float], object]
"""Receives the progress, from 0 to 1."""


def nobody(done: float) -> None:
    """Discard the progress."""


async def run_fleet(
    name: str, chain: Chain, settings: SimulationSettings, progress: Progress = nobody
) -> list[SimulatedProcess]:
    """Run the processes, and return each with the counts.

    The clock of the running loop must be virtual and begin at 0.0. The calls come at
    the same moments for any chain.

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
    """Make the servers, whose errors do not depend on the chain that calls."""
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
    """Seed the random numbers of all chains, and log nothing, until the block ends."""
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
