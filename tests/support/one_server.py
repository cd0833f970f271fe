"""One server in trouble, in virtual time, and processes that call it.

The server answers in 10 ms, unless it is away, fails by chance or is busy: it is a
plain function. Clients are of any make, sessions with chains of ours or of other
libraries, which end in a wire to that server.
"""

from __future__ import annotations

import asyncio
import importlib.util
import math
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from errno import ECONNREFUSED
from functools import partial
from pathlib import Path
from statistics import fmean
from types import MappingProxyType, SimpleNamespace

import aiohttp
from yarl import URL

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    RetryBudget,
    SessionBuilder,
)
from aioretry_smithy._bodies.response_content import new_response
from aioretry_smithy._request.request import HttpRequest
from aioretry_smithy._session.deadline import limit_of
from aioretry_smithy._session.install import send_with
from aioretry_smithy.testing import SimulationSettings, VirtualTimeLoop
from aioretry_smithy.testing._fleet import chance, isolated

URL_OF_IT = "http://orders.example"
SEEDS = (1, 2, 3)
ANSWER, AT_ONCE = 0.010, 0.001
PATIENCE = 10.0
"""Seconds that an attempt waits for an answer, whoever makes it."""

RESENT = (1.0, 3.0, 7.0, 15.0)
"""When the kernel asks again for a connection that nobody has answered for."""

BAD_PATH = "/reports"

REFUSED = ConnectionRefusedError(ECONNREFUSED, "Connect call failed")
KEY = SimpleNamespace(host="orders.example", port=80, ssl=True)
"""All of a key that an error shows."""


def well(now, path):
    return 200, ANSWER, True


@dataclass(frozen=True)
class Away:
    """A server that is away at times, each from one moment to another."""

    kind: str
    """Refused, swallowed, reset or 503."""

    times: tuple

    def __call__(self, now, path):
        if self._is_away(now):
            return self._in_vain(now)
        cut = next((b - now for b, _ in self.times if now < b < now + ANSWER), None)
        if cut is None or self.kind in {"503", "swallowed"}:
            return 200, ANSWER, True
        return aiohttp.ServerDisconnectedError(), cut, True

    def _is_away(self, now):
        return any(begin <= now < end for begin, end in self.times)

    def _in_vain(self, now):
        if self.kind == "refused":
            return aiohttp.ClientConnectorError(KEY, REFUSED), AT_ONCE, False
        if self.kind == "reset":
            return aiohttp.ServerDisconnectedError(), AT_ONCE, True
        if self.kind == "503":
            return 503, AT_ONCE, True
        heard = (wait for wait in RESENT if not self._is_away(now + wait))
        return 200, next(heard, math.inf) + ANSWER, False


def failing(seed, share, *kinds):
    """Make a server that fails by chance, in one of these ways."""
    drawn = chance(seed, 4)

    def server(now, path):
        if drawn.random() >= share:
            return 200, ANSWER, True
        kind = drawn.choice(kinds)
        return kind if isinstance(kind, int) else kind(), ANSWER, True

    return server


def one_bad_path(seed, share):
    """Make a server of which a path always fails, and others by chance."""
    others = failing(seed, share, 503)
    return lambda now, path: (
        (500, ANSWER, True) if path.startswith(BAD_PATH) else others(now, path)
    )


class Busy:
    """A server with one queue that can serve less for a while.

    Args:
        capacity: The requests a second.
        dip: When that is less, until when, and which part is left.
        sheds_at: The seconds of queue from which it answers 503 at once.
        price: What such an answer costs it, as a part of a request.
        headers: Those of such an answer.
    """

    def __init__(
        self,
        capacity,
        dip,
        *,
        sheds_at=math.inf,
        price=0.0,
        headers=MappingProxyType({}),
    ):
        self._capacity, self._dip = capacity, dip
        self._sheds_at, self._price = sheds_at, price
        self._shed = (503, headers), AT_ONCE, True
        self._free_at = 0.0

    def __call__(self, now, path):
        begin = max(now, self._free_at)
        sheds = begin - now > self._sheds_at
        self._free_at = self._end_of(self._price if sheds else 1.0, begin)
        return self._shed if sheds else (200, self._free_at - now, True)

    def _end_of(self, work, begin):
        """Return when so many requests are served from a time on."""
        dip, end, share = self._dip
        if not dip <= begin < end:
            return begin + work / self._capacity
        slow = self._capacity * share
        left = work - (end - begin) * slow
        return end + left / self._capacity if left > 0 else begin + work / slow


@dataclass(frozen=True)
class Call:
    """What became of a call."""

    method: str
    path: str
    began: float
    ended: float
    is_good: bool
    was_had: bool
    """Whether the server had a request of it."""


@dataclass(frozen=True)
class Run:
    """All calls, and when each request was sent."""

    calls: list[Call] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)

    def between(self, begin, end=math.inf):
        return Run(
            [each for each in self.calls if begin <= each.began < end],
            [at for at in self.sent if begin <= at < end],
        )

    def of_path(self, prefix, *, others=False):
        return Run([c for c in self.calls if c.path.startswith(prefix) != others])

    @property
    def lost(self):
        """The calls that failed, though they could be sent again."""
        return sum(
            not (c.is_good or (c.was_had and c.method == "POST")) for c in self.calls
        )

    @property
    def failed(self):
        return sum(not each.is_good for each in self.calls)

    @property
    def success(self):
        return fmean(each.is_good for each in self.calls)

    @property
    def load(self):
        """Requests for each call."""
        return len(self.sent) / len(self.calls)


class Wire:
    """Stands in for the network between sessions and the server."""

    def __init__(self, server, run):
        self._server, self._run = server, run
        self.had = set()

    def end(self, session):
        """Let the requests of a session end here."""
        send_with(session, partial(self._request, session.timeout))
        return session

    async def _request(self, usual, method, url, **arguments):
        now = asyncio.get_running_loop().time()
        self._run.sent.append(now)
        path = URL(url).path
        result, seconds, had = self._server(now, path)
        timeout = arguments.get("timeout", usual)
        limit = limit_of(getattr(timeout, "total", timeout))
        is_late = limit is not None and seconds > limit
        if had or not (is_late or isinstance(result, BaseException)):
            self.had.add(path)
        await asyncio.sleep(limit if is_late else seconds)
        if is_late:
            raise TimeoutError
        if isinstance(result, BaseException):
            raise result
        status, headers = result if isinstance(result, tuple) else (result, None)
        request = HttpRequest(method, url, **arguments)
        return new_response(request, status, headers=headers)


def calling(session):
    """Call by a session, or by what has its methods."""

    async def call(method, path):
        async with session.request(method, path) as response:
            return response.status < 400

    return call


def client_of(chain):
    """Make a client of a chain of ours."""

    @asynccontextmanager
    async def opened(wire):
        async with chain().build() as session:
            yield calling(wire.end(session))

    return opened


def run(seed, client, server, *, rate, seconds, processes=1, posts=0.0, bad=0.0):
    """Have processes call the server; see what becomes of it.

    Args:
        seed: The seed of all that is random.
        client: What each process calls by.
        server: The server.
        rate: Calls a second, of all processes together.
        seconds: When the last call begins.
        processes: So many, with nothing in common.
        posts: The share of calls that are POSTs.
        bad: The share of calls to the path that may be bad.
    """
    done, drawn = Run(), chance(seed, 0)
    wire = Wire(server, done)

    async def call(caller, method, path):
        loop = asyncio.get_running_loop()
        began, is_good = loop.time(), False
        with suppress(aiohttp.ClientError, TimeoutError):
            is_good = await caller(method, path)
        ended, was_had = loop.time(), path in wire.had
        done.calls.append(Call(method, path, began, ended, is_good, was_had))

    async def all_calls():
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            callers = [
                await stack.enter_async_context(client(wire)) for _ in range(processes)
            ]
            async for number in _at_random(drawn, rate, seconds):
                caller = callers[int(drawn.random() * processes)]
                method = "POST" if drawn.random() < posts else "GET"
                begin = BAD_PATH if drawn.random() < bad else "/orders"
                group.create_task(call(caller, method, f"{begin}/{number}"))

    with isolated(seed), asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(all_calls())
    done.calls.sort(key=lambda each: each.began)
    return done


async def _at_random(drawn, rate, seconds):
    number, loop = 0, asyncio.get_running_loop()
    while True:
        await asyncio.sleep(drawn.expovariate(rate))
        if loop.time() >= seconds:
            break
        number += 1
        yield number


def mean(measure):
    """Return the mean of a measure over the seeds."""
    return fmean(map(measure, SEEDS))


def standard(patience=PATIENCE, **settings):
    """Make the standard chain."""

    def chain():
        return SessionBuilder.standard(
            URL_OF_IT, attempt_timeout=patience, logging=None, **settings
        )

    return client_of(chain)


def no_retries(patience=PATIENCE):
    return client_of(lambda: SessionBuilder(URL_OF_IT).response_timeout(patience))


def changed(
    *,
    wait_for_ready=5.0,
    unserved_cost=0.1,
    consecutive_failures=5,
    failure_rate_threshold=1.0,
    multiplier=1.5,
):
    """Make a chain with the parts of the standard one, each as written here."""
    window = Backoff.exponential(0.1, 5.0, multiplier).with_jitter(-0.2, 0.0)

    def breaker(host):
        return CircuitBreaker(
            host,
            failure_rate_threshold=failure_rate_threshold,
            consecutive_failures=consecutive_failures,
            circuit_open_window=window,
            counter_sliding_window=10.0,
        )

    def chain():
        return SessionBuilder.standard(
            URL_OF_IT,
            logging=None,
            limiter=RetryBudget.per_host(unserved_cost=unserved_cost),
            circuit_breaker=CircuitBreakerClient.new_per_host_decorator(
                breaker,
                CircuitBreakerStrategy.on_server_error_status(count_throttling=False),
                wait_for_ready=wait_for_ready,
            ),
        )

    return client_of(chain)


DOCS = Path(__file__).parents[2] / "docs"


def simulation_of_the_page():
    """Return the module with the retry storm of the documentation."""
    path = DOCS / "examples" / "retry_storm.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settings(**changes):
    """Return what all have in common: a few calls, each of which may succeed."""
    usual = {"clients": 1, "rate": 4.0, "capacity": 10.0, "outage": None}
    usual |= {"duration": 4.0, "error_rate": 0.0, "seed": 0}
    return SimulationSettings(**usual | changes)


class ScriptedServer:
    """Answers with a status after seconds."""

    def __init__(self, answers):
        self.answers = iter(answers)

    def serve(self, now):
        status, seconds = next(self.answers)
        return status, now + seconds
