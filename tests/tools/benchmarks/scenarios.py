"""The situations in which all variants are measured."""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import count

from calling import BARE, BY_HAND, Variant
from function_variants import BARE_FUNCTION, in_turn
from group_variants import BALANCED, CHOSEN, JOINED, NO_CHOICE, PATHS
from rounds import differences, ratios, ratios_of_least
from stub import ADDRESS, Gate, stubbed
from variants import TIMINGS, UNTIMED

WARM_UP = 50
IN_FLIGHT = 10_000
HOSTS = [f"http://stub-{number}.example/ok" for number in range(512)]
FLAKY = 503, 503, 200
POSTED = {"json": {"a": 1}, "headers": {"X-A": "1"}, "params": {"b": "2"}}

Measure = Callable[[Variant, str], Awaitable[float]]
"""Measures a variant against the server at an address."""


@dataclass(frozen=True)
class Scenario:
    """One column of the comparison."""

    title: str
    unit: str
    measure: Measure
    base: str = BARE
    compare: Callable[[Sequence[float], Sequence[float]], list[float]] = ratios
    retries: bool = False
    """Whether only variants that retry can take part."""

    is_function: bool = False
    """Whether only functions that send nothing take part."""

    posts: bool = False
    """Whether only variants that pass options on can take part."""

    group: str = ""
    """Only variants of it take part; where empty, only those of none."""

    rounds: int | None = None
    """So many rounds are enough."""


async def one_after_another(call, urls):
    for url in urls:
        if await call(url) != HTTPStatus.OK:
            raise AssertionError(url)


async def all_at_once(call, urls):
    await asyncio.gather(*map(call, urls))


async def at_once(workers, call, urls):
    shares = (urls[first::workers] for first in range(workers))
    await asyncio.gather(*(one_after_another(call, share) for share in shares))


async def posted_one_after_another(call, urls):
    await one_after_another(partial(call, **POSTED), urls)


async def in_stub(way, urls, warm_up, variant, server, *, statuses=(200,)):
    """Return the microseconds of CPU per call where nothing is sent."""
    with stubbed(statuses=statuses):
        return await _cpu(way, variant, urls, urls[:warm_up])


async def on_loopback(way, calls, variant, server):
    """Return the microseconds of CPU per call that the client takes."""
    url = f"{server}/ok"
    return await _cpu(way, variant, [url] * calls, [url] * WARM_UP)


numbers = count()


async def on_flaky_path(way, calls, variant, server):
    """Return the same where a call needs three attempts: 503, 503, 200."""
    # The server counts by path.
    urls = [f"{server}/{next(numbers)}" for _ in range(calls + WARM_UP)]
    return await _cpu(way, variant, urls[:calls], urls[calls:])


async def _cpu(way, variant, urls, first):
    async with variant.open() as call:
        # Connections are there, and breakers, before the clock starts.
        await way(call, first)
        with _garbage_of_its_own():
            started = time.process_time()
            await way(call, urls)
            spent = time.process_time() - started
    return spent / len(urls) * 1e6


@contextmanager
def _garbage_of_its_own():
    """Let each variant pay for collecting what it makes, and for nothing older."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def in_flight(variant, server):
    """Return the bytes that a call holds while it waits for its answer."""
    gate = Gate(IN_FLIGHT)
    with stubbed(gate):
        async with variant.open() as call:
            gc.collect()
            tracemalloc.start()
            calls = [asyncio.ensure_future(call(ADDRESS)) for _ in range(IN_FLIGHT)]
            await gate.full.wait()
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            gate.open()
            await asyncio.gather(*calls)
    return held / IN_FLIGHT


SCENARIOS = {
    "stub-1": Scenario(
        "stub, one after another",
        "us",
        partial(in_stub, one_after_another, [ADDRESS] * 2000, WARM_UP),
    ),
    "stub-least": Scenario(
        "stub, one after another, least of the rounds",
        "us",
        partial(in_stub, one_after_another, [ADDRESS] * 2000, WARM_UP),
        compare=ratios_of_least,
    ),
    "stub-1000": Scenario(
        "stub, 1000 at once",
        "us",
        partial(in_stub, all_at_once, [ADDRESS] * 1000, WARM_UP),
    ),
    "stub-post": Scenario(
        "stub, POST with json=, headers= and params=",
        "us",
        partial(in_stub, posted_one_after_another, [ADDRESS] * 2000, WARM_UP),
        posts=True,
    ),
    "stub-hosts": Scenario(
        "stub, 512 hosts in turn",
        "us",
        partial(in_stub, one_after_another, HOSTS * 4, len(HOSTS)),
    ),
    "stub-flaky": Scenario(
        "stub, 503 503 200, one after another",
        "us",
        partial(in_stub, one_after_another, [ADDRESS] * 500, WARM_UP, statuses=FLAKY),
        base=BY_HAND,
        retries=True,
    ),
    "loopback-1": Scenario(
        "loopback, one after another",
        "us",
        partial(on_loopback, one_after_another, 150),
    ),
    "loopback-50": Scenario(
        "loopback, 50 at once", "us", partial(on_loopback, partial(at_once, 50), 1000)
    ),
    "flaky": Scenario(
        "loopback, 503 503 200, 50 at once",
        "us",
        partial(on_flaky_path, partial(at_once, 50), 300),
        base=BY_HAND,
        retries=True,
    ),
    "timings-1": Scenario(
        "loopback, one after another, waits for connections timed",
        "us",
        partial(on_loopback, one_after_another, 150),
        base=UNTIMED,
        group=TIMINGS,
    ),
    "timings-50": Scenario(
        "loopback, 50 at once, waits for connections timed",
        "us",
        partial(on_loopback, partial(at_once, 50), 1000),
        base=UNTIMED,
        group=TIMINGS,
    ),
    # Counted, not timed: two rounds hardly ever differ.
    "function": Scenario(
        "a function that returns at once",
        "us",
        partial(in_turn, 20_000),
        base=BARE_FUNCTION,
        is_function=True,
    ),
    "stub-group": Scenario(
        "stub, 100 paths in turn, 3 endpoints",
        "us",
        partial(in_stub, one_after_another, PATHS * 20, len(PATHS)),
        base=JOINED,
        group=BALANCED,
    ),
    "choice": Scenario(
        "choice, begin and end as arithmetic",
        "us",
        partial(in_stub, one_after_another, PATHS * 200, len(PATHS)),
        base=NO_CHOICE,
        compare=differences,
        group=CHOSEN,
    ),
    "memory": Scenario(
        "memory per call in flight", "bytes", in_flight, compare=differences, rounds=3
    ),
}
