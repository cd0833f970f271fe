"""A server that is slow for ten seconds, and four ways to call it.

Prints a table; ``--plot FILE`` draws it as well, which needs matplotlib. Everything is
twenty times smaller than on the page; ``--scale 1`` is as large and takes a minute.
"""

import argparse
import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

import aiohttp

from aioretry_smithy import (
    Backoff,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    new_response,
)
from aioretry_smithy.testing import VirtualTimeLoop

URL = "http://orders.example"
SERVED_PER_SECOND = 1000
CALLS_PER_SECOND = 700
DIP = range(10, 20)
DIP_TO = 0.2


def strategy(chance):
    backoff = Backoff.exponential(0.1, 20.0).with_full_jitter(random=chance.random)
    return RetryStrategy.failsafe(backoff)


def retrying(wire, strategy, **settings):
    decorator = RetryingClient.new_decorator(strategy, attempt_timeout=1.0, **settings)
    builder = SessionBuilder(URL).decorator(wire).decorator(decorator)
    return builder.response_timeout(30.0)


def no_retries(wire, chance):
    return retrying(wire, RetryStrategy.never())


def three_retries(wire, chance):
    return retrying(wire, strategy(chance), max_total_attempts=4)


def budget_alone(wire, chance):
    budget = RetryBudget.per_host()
    return retrying(wire, strategy(chance), max_total_attempts=3, limiter=budget)


def standard_chain(wire, chance):
    return SessionBuilder.standard(
        URL,
        attempt_timeout=1.0,
        strategy=strategy(chance),  # the usual one, with seeded jitter
        logging=None,  # it would be a long log
        inside=[wire],
    )


CLIENTS = {
    "no retries": no_retries,
    "3 retries": three_retries,
    "budget alone": budget_alone,
    "standard chain": standard_chain,
}


class Server:
    """Serve one request after another, even if its client has given up."""

    def __init__(self, per_second, dip, error_rate, chance):
        self.per_second, self.dip = per_second, dip
        self.error_rate, self.chance = error_rate, chance
        self.free_at = 0.0

    def serve(self, now):
        """Return what the answer to a request will be, and when it will be ready."""
        begin = max(now, self.free_at)
        share = DIP_TO if int(begin) in self.dip else 1.0
        self.free_at = begin + 1.0 / (self.per_second * share)
        status = 503 if self.chance.random() < self.error_rate else 200
        return status, self.free_at


class Process:
    """A process of a client: its own session, and the wire from it to the server."""

    def __init__(self, client, chance, server):
        self.session = client(lambda delegate: self, chance).build()
        self.server = server
        self.begun = Counter[int]()
        self.succeeded = Counter[int]()
        self.sent = Counter[int]()

    async def call(self):
        second = int(asyncio.get_running_loop().time())
        self.begun[second] += 1
        try:
            async with self.session.get("/") as response:
                self.succeeded[second] += response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            pass

    async def execute(self, ctx, request):
        """Stand in for aiohttp: send a request, and wait as long as it may take."""
        now = asyncio.get_running_loop().time()
        self.sent[int(now)] += 1
        status, ready_at = self.server.serve(now)
        await asyncio.sleep(min(ready_at, ctx.deadline) - now)
        if ready_at > ctx.deadline:
            raise TimeoutError
        return new_response(request, status)


@dataclass
class Record:
    """What has happened in each second; calls count where they began."""

    processes: list[Process]
    begun: Counter[int] = field(default_factory=Counter)
    succeeded: Counter[int] = field(default_factory=Counter)
    sent: Counter[int] = field(default_factory=Counter)

    def __post_init__(self):
        for process in self.processes:
            self.begun.update(process.begun)
            self.succeeded.update(process.succeeded)
            self.sent.update(process.sent)

    def attempts_per_call(self, seconds):
        begun = sum(self.begun[second] for second in seconds)
        return sum(self.sent[second] for second in seconds) / begun

    def success(self, seconds):
        begun = sum(self.begun[second] for second in seconds)
        return sum(self.succeeded[second] for second in seconds) / begun

    def back_after(self):
        """Seconds from the end of the dip until 99 % succeed for good, or None."""
        bad = [second for second in self.begun if self.success([second]) < 0.99]
        last = max(bad, default=DIP.stop - 1)
        return None if last == max(self.begun) else last + 1 - DIP.stop


async def run(client, processes, scale, seconds, dip, error_rate, seed):
    # What happens to the clients is the same for all of them; what they do is not.
    arrivals, errors, jitter = (random.Random(f"{seed} {n}") for n in range(3))
    loop = asyncio.get_running_loop()
    server = Server(SERVED_PER_SECOND / scale, dip, error_rate, errors)
    fleet = [Process(client, jitter, server) for _ in range(processes // scale)]
    calls = set()
    while True:
        await asyncio.sleep(arrivals.expovariate(CALLS_PER_SECOND / scale))
        if loop.time() >= seconds:
            break
        call = loop.create_task(fleet[int(arrivals.random() * len(fleet))].call())
        calls.add(call)
        call.add_done_callback(calls.discard)
    await asyncio.gather(*calls)
    for process in fleet:
        await process.session.close()
    return Record(fleet)


def simulate(
    client, processes, *, scale=1, seconds=60, dip=DIP, error_rate=0.0, seed=7
):
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(run(client, processes, scale, seconds, dip, error_rate, seed))


def measure(scale):
    """Return what happened to each kind of client, in 50 and in 500 processes."""
    return {
        (name, processes): simulate(client, processes, scale=scale)
        for processes in (50, 500)
        for name, client in CLIENTS.items()
        # Plain retries share nothing: how many processes there are is all the same.
        if name != "3 retries" or processes == 50
    }


def row_of(name, record):
    """Return what the table says of a kind of client."""
    back_after = record.back_after()
    return (
        name,
        f"{len(record.processes)}",
        f"{record.attempts_per_call(DIP):.2f}",
        "never" if back_after is None else f"{back_after} s",
        f"{1 - record.success(record.begun):.0%}",
    )


def show(rows):
    print("                           attempts     99 % succeed    calls")
    print("client          processes  per call   again after dip  failed")
    print("                             in dip")
    for name, processes, load, back_after, failed in rows:
        print(f"{name:15}{processes:>10}{load:>10}{back_after:>18}{failed:>8}")


def plot(file, records, scale):
    from matplotlib import pyplot as plt  # noqa: PLC0415

    plt.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "retry storm", "font.size": 9}
    )
    figure, panels = plt.subplots(
        2, 2, figsize=(7.2, 5.2), sharex=True, sharey="row", layout="constrained"
    )
    names = ["black", "tab:red", "tab:orange", "tab:blue"]
    colors = dict(zip(CLIENTS, names, strict=True))
    for column, count in zip(panels.T, (50, 500), strict=True):
        sent, succeeded = column
        for (name, processes), record in records.items():
            if processes == count or name == "3 retries":
                seconds = sorted(record.begun)
                style = {"baseline": None, "color": colors[name], "label": name}
                sent.stairs([record.sent[n] * scale for n in seconds], **style)
                share = [100 * record.success([n]) for n in seconds]
                succeeded.stairs(share, **style)
        for panel in column:
            panel.axvspan(DIP.start, DIP.stop, color="0.93", zorder=0)
            panel.set_xlim(0, 60)
            panel.set_ylim(bottom=0)
        served = [SERVED_PER_SECOND * (DIP_TO if n in DIP else 1) for n in range(60)]
        sent.stairs(served, baseline=None, color="0.5", ls=":", label="can be served")
        sent.set_title(f"{count} processes", loc="left")
        succeeded.set_xlabel("seconds")
    panels[0, 0].set_ylabel("requests per second")
    panels[1, 0].set_ylabel("calls that succeed, %")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False)
    figure.savefig(file, metadata={"Date": None} if file.endswith(".svg") else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=20, help="how many times smaller")
    parser.add_argument("--plot", metavar="FILE", help="draw it, as SVG or PNG")
    arguments = parser.parse_args()
    records = measure(arguments.scale)
    show([row_of(name, record) for (name, _), record in records.items()])
    if arguments.plot:
        plot(arguments.plot, records, arguments.scale)


if __name__ == "__main__":
    main()
