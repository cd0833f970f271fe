"""What retries do to a server in trouble: the figures of the page, and their bounds.

Runs the simulation that the page shows, in virtual time. What scales well is scaled
down; what each process does by itself, its calls per second, is not.
"""

from __future__ import annotations

import csv
import functools
import importlib.util
from pathlib import Path
from typing import Any

import pytest

# One process runs them all: each simulation serves several tests.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("storms")]
DOCS = Path(__file__).parents[2] / "docs"
NO_DIP = range(0)


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


storm = _load(DOCS / "examples" / "retry_storm.py")


@functools.cache
def simulate(client: str, processes: int, **settings: Any) -> Any:
    """Simulate once what several tests look at."""
    return storm.simulate(storm.CLIENTS[client], processes, **settings)


def load_in_dip(client: str, processes: int) -> float:
    record, bare = simulate(client, processes), simulate("no retries", processes)
    sent, usual = (sum(r.sent[n] for n in storm.DIP) for r in (record, bare))
    return sent / usual


fleets = pytest.mark.parametrize("processes", [50, 500])


@fleets
def test_dip_is_what_the_page_says(processes):
    """All is well before the dip; without retries it is over in some 14 seconds."""
    record = simulate("no retries", processes)

    assert 1.0 == record.success(range(storm.DIP.start))
    assert record.begun == record.sent
    assert 12 <= record.back_after() <= 16


@pytest.mark.parametrize(("processes", "load"), [(50, 0.75), (500, 0.85)])
def test_standard_chain_helps_the_server(processes, load):
    """It sends less than clients without retries do, and is back seconds sooner."""
    record, bare = (
        simulate(client, processes) for client in ("standard chain", "no retries")
    )

    assert load_in_dip("standard chain", processes) <= load
    assert record.back_after() <= bare.back_after() - 3


@pytest.mark.parametrize(
    ("processes", "load", "later"), [(50, 1.03, 2), (500, 1.17, 5)]
)
def test_budget_alone_does_little_harm(processes, load, later):
    """It sends hardly more than clients without retries do, and is back about then."""
    record, bare = (
        simulate(client, processes) for client in ("budget alone", "no retries")
    )

    assert load_in_dip("budget alone", processes) <= load
    assert record.back_after() <= bare.back_after() + later


@fleets
def test_plain_retries_never_let_go(processes):
    """Without a budget nothing succeeds any more, long after the dip is over."""
    record = simulate("3 retries", processes, scale=10, seconds=storm.DIP.stop + 110)

    assert record.back_after() is None
    assert 0 == record.success(range(storm.DIP.stop, storm.DIP.stop + 110))


@fleets
def test_budget_ends_retries_where_nothing_succeeds(processes):
    """When everything fails, a process retries less often than the brake allows."""
    record = simulate("budget alone", processes, dip=NO_DIP, error_rate=1.0)
    retries = [p.sent.total() - p.begun.total() for p in record.processes]

    assert 0 == record.succeeded.total()
    assert 0 < max(retries) <= 3 - 1


@pytest.mark.parametrize(("processes", "most"), [(50, 0.1), (500, 0.4)])
def test_standard_chain_goes_on_trying(processes, most):
    """When everything fails it sends little, but every process asks now and then."""
    record = simulate("standard chain", processes, dip=NO_DIP, error_rate=1.0)
    last = range(45, 60)

    assert record.attempts_per_call(range(60)) <= most
    assert all(any(p.sent[second] for second in last) for p in record.processes)


@pytest.mark.parametrize(
    ("error_rate", "seconds", "success"),
    # 10 % is more than the budget pays for: its savings are used up after minutes.
    [(0.01, 300, 0.9995), (0.05, 300, 0.999), (0.1, 600, 0.985)],
)
@fleets
def test_random_errors_hardly_reach_the_caller(processes, error_rate, seconds, success):
    """Where the server is well, the standard chain hides single failures of it."""
    record = simulate(
        "standard chain",
        processes,
        scale=10,
        seconds=seconds,
        dip=NO_DIP,
        error_rate=error_rate,
    )

    assert success <= record.success(range(seconds))
    assert record.attempts_per_call(range(seconds)) <= 1.11


def test_page_shows_these_figures():
    """The table of the page is what the simulation prints in full size."""
    path = DOCS / "explanation" / "retry-storms.csv"
    with path.open(encoding="utf-8", newline="") as file:
        _, *shown = csv.reader(file)
    runs = [
        (client, processes)
        for processes in (50, 500)
        for client in ("no retries", "budget alone", "standard chain")
    ]

    measured = [list(storm.row_of(run[0], simulate(*run))) for run in runs]

    assert measured == [row for row in shown if row[0] != "3 retries"]
