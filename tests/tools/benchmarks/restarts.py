"""Count the calls that a restart of their one server costs, by who makes them.

    tox run -e bench -- restarts
    tox run -e bench -- restarts --csv FILE     # the table of the page
    tox run -e bench -- restarts --seeds 1      # quicker

In virtual time, so the figures are the same on every machine. The server answers in
10 ms, goes away for a while and is back; 20 GETs a second go on. Meanwhile it refuses
connections, resets them, or its gateway answers 503: a figure is the mean of the three.
Each attempt waits 10 s for an answer.

The last columns are of a busy server, at 70 % of what it can do, that can do a fifth of
that for ten seconds, where each attempt waits 1 s: the requests that it then gets for
each call, and the seconds until all is well again.
"""

import argparse
import csv
import sys
from pathlib import Path
from statistics import fmean

sys.path.append(str(Path(__file__).parents[2] / "support"))

from one_server import PATIENCE, SEEDS, Away, Busy, run
from restart_clients import clients
from rich.console import Console
from rich.table import Table

KINDS = ("refused", "reset", "503")
LENGTHS = (0.3, 1.0, 3.0, 6.0, 20.0)
BEGIN, RATE = 5.0, 20.0
DIP, CAPACITY, PROCESSES, END = (10.0, 20.0, 0.2), 50.0, 3, 50.0
HEAD = (
    "calls by",
    *(f"{length:g} s" for length in LENGTHS),
    "requests a call, overload",
    "recovery",
)


def lost(client, length, seeds):
    """Return the calls that a restart costs, of those that can be sent again."""
    away = BEGIN, BEGIN + length
    return fmean(
        run(seed, client, Away(kind, [away]), rate=RATE, seconds=away[1] + 1.0).lost
        for seed in seeds
        for kind in KINDS
    )


def overload(client, seed):
    return run(
        seed,
        client,
        Busy(CAPACITY, DIP),
        rate=0.7 * CAPACITY,
        seconds=END,
        processes=PROCESSES,
    )


def recovery(done):
    """Return the seconds after the dip until 99 of 100 calls are good, for good."""
    seconds = [(n, done.between(n, n + 1)) for n in range(int(END))]
    bad = [n for n, calls in seconds if calls.calls and calls.success < 0.99]
    last = bad[-1] if bad else -1
    return None if last == END - 1 else max(0.0, last + 1 - DIP[1])


def row(name, made, seeds):
    """Measure what a client loses in restarts, and does to a busy server."""
    figures = [lost(made(PATIENCE), length, seeds) for length in LENGTHS]
    done = overload(made(1.0), seeds[0])
    seconds = recovery(done)
    back = "never" if seconds is None else f"{seconds:g} s"
    load = done.between(*DIP[:2]).load
    return (name, *(f"{each:.0f}" for each in figures), f"{load:.2f}", back)


def table(seeds=SEEDS):
    """Yield the head of the table, and a row for each client that can be had."""
    yield HEAD
    found, missing = clients()
    for name in missing:
        print(f"left out: {name} (is not installed)", file=sys.stderr)
    for name, made in found.items():
        yield row(name, made, seeds)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--csv", type=Path, metavar="FILE")
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    given = parser.parse_args(arguments)
    head, *rows = table(SEEDS[: given.seeds])
    shown = Table(title="calls lost in a restart", title_justify="left")
    for name in head:
        shown.add_column(name, justify="left" if name == head[0] else "right")
    for each in rows:
        shown.add_row(*each)
    Console(width=120).print(shown)
    if given.csv:
        with given.csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *rows])


if __name__ == "__main__":
    main()
