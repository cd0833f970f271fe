"""Twenty thousand calls to a server that is now and then slow, with and without hedges.

Prints a table; ``--plot FILE`` draws it as well, which needs matplotlib. ``--calls`` is
how many calls are made for each line of the table.
"""

import argparse
import asyncio
import math
import random

from aioretry_smithy import HedgingClient, HedgingDelay, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop

CALLS = 20_000
USUAL, SPREAD = 0.010, 0.4
OUTLIERS, OUTLIER = 0.02, 0.3

HEDGES = {
    "no hedges": None,
    "after p95": HedgingDelay.percentile(0.95),
    "after p98": HedgingDelay.percentile(0.98),
    "after p99": HedgingDelay.percentile(0.99),
}


def answers():
    """Yield answers after 10 ms or so; of fifty, one takes 300 ms longer or so."""
    chance = random.Random(7)

    async def answer(ctx, request):
        seconds = chance.lognormvariate(math.log(USUAL), SPREAD)
        if chance.random() < OUTLIERS:
            seconds += chance.expovariate(1 / OUTLIER)
        await asyncio.sleep(seconds)
        return 200

    while True:
        yield answer


async def times_of(delay, calls):
    """Return how long each call took, and how many requests each one cost."""
    transport = ScriptedTransport(answers())
    builder = SessionBuilder("http://orders.example").decorator(transport)
    if delay is not None:
        builder.decorator(HedgingClient.new_decorator(delay))
    clock, times, requests = asyncio.get_running_loop().time, [], 0
    async with builder.build() as session:
        for _ in range(calls):
            started = clock()
            async with session.get("/"):
                times.append(clock() - started)
            requests += len(transport.requests)
            transport.requests.clear()
            transport.contexts.clear()
    return sorted(times), requests / calls


def measure(calls=CALLS):
    found = {}
    for name, delay in HEDGES.items():
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            found[name] = runner.run(times_of(delay, calls))
    return found


def quantile(times, part):
    return times[math.ceil(part * len(times)) - 1]


def show(found):
    print("             requests   milliseconds until the headers")
    print("             per call     p50     p95     p99   p99.9")
    for name, (times, requests) in found.items():
        parts = (quantile(times, part) * 1000 for part in (0.5, 0.95, 0.99, 0.999))
        figures = "".join(f"{figure:>8.1f}" for figure in parts)
        print(f"{name:10}{requests:>11.3f}{figures}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--plot", metavar="FILE", help="draw it, as SVG or PNG")
    arguments = parser.parse_args()
    found = measure(arguments.calls)
    show(found)


if __name__ == "__main__":
    main()
