"""Ten workers against a server that throttles, with two strategies of Smithy's.

Prints a table; ``--plot FILE`` draws it as well, which needs matplotlib.
"""

import argparse
import asyncio
import random
from collections import Counter, deque
from itertools import repeat
from pathlib import Path

from aioretry_smithy import RetryingClient, SessionBuilder
from aioretry_smithy.smithy import AdaptiveRetryStrategy, StandardRetryStrategy
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop

WORKERS = 10
SECONDS = 60


def limit_at(second):
    return 5 if 20 <= second < 40 else 20


class Server:
    """Answer after 50 ms: 429 when the last second was at the limit, else 200."""

    def __init__(self):
        self.served_at = deque[float]()
        self.sent = Counter[int]()
        self.served = Counter[int]()

    async def answer(self, ctx, request):
        await asyncio.sleep(0.05)
        now = asyncio.get_running_loop().time()
        self.sent[int(now)] += 1
        while self.served_at and self.served_at[0] <= now - 1.0:
            self.served_at.popleft()
        if len(self.served_at) >= limit_at(now):
            return 429
        self.served_at.append(now)
        self.served[int(now)] += 1
        return 200


async def work(session, failed):
    while True:
        async with session.get("/orders") as response:
            failed[response.status != 200] += 1


async def measure(strategy):
    server, failed = Server(), Counter[bool]()
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(repeat(server.answer)))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session:
        workers = [asyncio.create_task(work(session, failed)) for _ in range(WORKERS)]
        await asyncio.sleep(SECONDS)
        for worker in workers:
            worker.cancel()
        await asyncio.wait(workers)
    return server, failed[True]


def run(strategy):
    random.seed(7)  # the same jitter each time
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(measure(strategy))


def show(standard, adaptive):
    print("                    standard          adaptive")
    print("seconds  limit    sent  served      sent  served")
    for start, end in *((n, n + 10) for n in range(0, SECONDS, 10)), (0, SECONDS):
        span = range(start, end)
        row = f"{start:2}-{end}{sum(map(limit_at, span)):9}"
        for server, _ in standard, adaptive:
            sent = sum(server.sent[second] for second in span)
            served = sum(server.served[second] for second in span)
            row += f"{sent:8}{served:8}  "
        print(row.rstrip())
    print(f"calls that failed {standard[1]:12}{adaptive[1]:18}")


def plot(file, standard, adaptive):
    from matplotlib import pyplot as plt  # noqa: PLC0415

    plt.style.use(Path(__file__).with_name("pictures.mplstyle"))
    seconds = range(SECONDS)
    figure, panels = plt.subplots(2, 1, figsize=(7.2, 5.2), sharex=True)
    figure.set_layout_engine("constrained")
    for panel, (server, failed), name in zip(
        panels, (standard, adaptive), ("standard", "adaptive"), strict=True
    ):
        sent = [server.sent[second] for second in seconds]
        limits = [limit_at(second) for second in seconds]
        panel.stairs(sent, baseline=None, color="C1", label="sent")
        panel.stairs(limits, baseline=None, color="C5", ls="--", label="limit")
        panel.set_title(f"{name}: {failed} calls failed")
        panel.set_ylabel("requests per second")
        panel.set_xlim(0, SECONDS)
        panel.set_ylim(bottom=0)
        panel.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    panels[-1].set_xlabel("seconds")
    figure.savefig(file, metadata={"Date": None} if file.endswith(".svg") else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", metavar="FILE", help="draw the table, as SVG or PNG")
    arguments = parser.parse_args()
    results = run(StandardRetryStrategy()), run(AdaptiveRetryStrategy())
    show(*results)
    if arguments.plot:
        plot(arguments.plot, *results)


main()
