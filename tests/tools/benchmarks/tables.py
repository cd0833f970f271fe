"""Tables of figures that are the median of several runs.

tox run -e bench -- bounds        # of the chains that pages show
tox run -e bench -- costs         # the table of the README and of its page
tox run -e bench -- imports       # what an import takes in addition to aiohttp's
"""

import argparse
import platform
from importlib import metadata
from statistics import median

from bounds import SHOWN
from calling import BARE, BY_HAND
from figures import Figure, in_runs
from imports import STATEMENTS, ratios
from peers import AIOHTTP_RETRY
from rich.console import Console
from rich.table import Table
from scenarios import SCENARIOS
from variants import README, RETRY, STANDARD

CHAINS = {
    "the chain of the README": README,
    "SessionBuilder.standard()": STANDARD,
    "retries alone": RETRY,
    "aiohttp-retry": AIOHTTP_RETRY,
}
"""The rows of the table of costs."""

SITUATIONS = {
    "without network": ("stub-1", BARE),
    "over loopback": ("loopback-50", BARE),
    "two failures, beside own loop": ("flaky", BY_HAND),
}
"""Its columns: the scenario, and what stands beside the chain."""


def bounds(rounds, runs):
    """Measure what the chains cost that pages show, and say which bounds are kept."""
    figures = [
        Figure(scenario, bound.variant, bound.base)
        for scenario, several in SHOWN.items()
        for bound in several
    ]
    limits = [bound for several in SHOWN.values() for bound in several]
    words, numbers = ("situation", "variant", "beside"), ("at most", "aim", "median")
    table = _table("bounds", words, (*numbers, "each run", ""))
    found = in_runs(figures, rounds, runs)
    for figure, bound, values in zip(figures, limits, found, strict=True):
        table.add_row(
            SCENARIOS[figure.scenario].title,
            figure.variant,
            figure.base,
            *map(_short, (bound.limit, bound.aim, median(values))),
            ", ".join(map(_short, values)),
            "ok" if median(values) <= bound.limit else "missed",
        )
    return table


def costs(rounds, runs):
    """Measure what stands in the table of the README and in that of the page."""
    figures = [
        Figure(scenario, variant, base)
        for variant in CHAINS.values()
        for scenario, base in SITUATIONS.values()
    ]
    table = _table("costs", ("a call with",), SITUATIONS)
    found = iter(in_runs(figures, rounds, runs))
    for chain in CHAINS:
        table.add_row(chain, *(f"{median(next(found)):.1f}" for _ in SITUATIONS))
    return table


def imports(rounds, runs):
    """Measure what is loaded first, in units of ``import aiohttp``."""
    table = _table("imports", ("in addition to aiohttp",), ("median", "each run"))
    found = [ratios(rounds) for _ in range(runs)]
    for statement in STATEMENTS:
        values = [each[statement] for each in found]
        table.add_row(statement, _short(median(values)), ", ".join(map(_short, values)))
    return table


TABLES = {
    "bounds": bounds,
    "costs": costs,
    "imports": imports,
}


def show_table():
    """Print the table that is asked for, and what it was measured on."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    rounds, runs = arguments.rounds, arguments.runs
    Console(width=180).print(TABLES[arguments.table](rounds, runs))
    python, aiohttp = platform.python_version(), metadata.version("aiohttp")
    print(f"{runs} runs of {rounds} rounds, Python {python}, aiohttp {aiohttp}")


def _table(title, words, numbers):
    table = Table(title=title, title_justify="left")
    for heading in words:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _short(number):
    # Ratios are small, bytes are many.
    return f"{number:,.0f}" if number >= 100 else f"{number:.2f}"
