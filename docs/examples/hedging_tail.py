"""Twenty thousand calls to a server that is now and then slow, with and without hedges.

Prints a table; ``--plot FILE`` draws it as well, which needs matplotlib. ``--calls`` is
how many calls are made for each line of the table.
"""

import argparse
import asyncio
import math
import random
from pathlib import Path

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
    """Yield answers after about 10 ms; one in fifty takes about 300 ms longer."""
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


def plot(file, found):
    from matplotlib import pyplot as plt  # noqa: PLC0415

    plt.style.use(Path(__file__).with_name("pictures.mplstyle"))
    figure, panel = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    colors = ["C5", "C0", "C2", "C1"]
    for (name, (times, requests)), color in zip(found.items(), colors, strict=True):
        ranks = sorted({round(len(times) ** (n / 300)) for n in range(1, 301)})
        slowest = [1000 * times[len(times) - rank] for rank in ranks]
        shares = [100 * rank / len(times) for rank in ranks]
        label = f"{name}, {requests:.2f} requests a call"
        panel.loglog(slowest, shares, color=color, label=label)
    for share, name in (5, "p95"), (1, "p99"), (0.1, "p99.9"):
        panel.axhline(share, color="0.6", lw=0.8, zorder=0)
        panel.text(5.3, share, name, va="bottom")
    panel.grid(visible=False)
    panel.set_xlim(5, 3000)
    panel.set_xticks([10, 100, 1000], ["10", "100", "1000"])
    panel.set_yticks([100, 10, 1, 0.1, 0.01], ["100", "10", "1", "0.1", "0.01"])
    panel.set_xlabel("milliseconds until the headers")
    panel.set_ylabel("calls that take longer, %")
    panel.legend(loc="upper right")
    figure.savefig(file, metadata={"Date": None} if file.endswith(".svg") else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--plot", metavar="FILE", help="draw it, as SVG or PNG")
    arguments = parser.parse_args()
    found = measure(arguments.calls)
    show(found)
    if arguments.plot:
        plot(arguments.plot, found)


if __name__ == "__main__":
    main()
