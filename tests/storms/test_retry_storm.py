"""Retry storms: the page's figures of a server in trouble, and their bounds.

Runs the simulation that the page shows, in virtual time. What scales well is scaled
down; what each process does by itself, its calls per second, is not.
"""

import asyncio
import csv
from functools import cache

import pytest
from one_server import DOCS, simulation_of_the_page

from aioretry_smithy.testing import SimulationSettings, VirtualTimeLoop
from aioretry_smithy.testing._fleet import run_fleet

# One process runs them all: each simulation serves several tests.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("storms")]
storm = simulation_of_the_page()


@cache
def simulate(client, processes, **settings):
    """Simulate once what several tests look at."""
    return storm.storm({client: storm.CLIENTS[client]}, processes, **settings)[client]


@cache
def processes_without_an_answer(client, processes):
    """Simulate a minute in which all requests fail; return each process."""
    settings = SimulationSettings(
        clients=processes,
        rate=storm.CALLS_PER_SECOND,
        capacity=storm.SERVED_PER_SECOND,
        outage=None,
        duration=60.0,
        error_rate=1.0,
        seed=7,
    )
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(run_fleet(client, storm.CLIENTS[client], settings))


def success(run, begin, end):
    return sum(run.answered[begin:end]) / sum(run.calls[begin:end])


fleets = pytest.mark.parametrize(
    "processes", [50, pytest.param(500, marks=pytest.mark.release)]
)


@fleets
def test_dip_is_what_the_page_says(processes):
    """All is well before the dip; without retries it is over in some 14 seconds."""
    run = simulate("no retries", processes)

    assert 1.0 == success(run, 0, storm.DIP.start)
    assert run.calls == run.attempts
    assert 12 <= run.seconds_to_recover <= 16


@pytest.mark.parametrize(
    ("processes", "load"),
    [(50, 0.5), pytest.param(500, 0.85, marks=pytest.mark.release)],
)
def test_standard_chain_helps_the_server(processes, load):
    """It sends less than clients without retries do, and is back seconds sooner."""
    run, bare = (
        simulate(client, processes) for client in ("standard chain", "no retries")
    )

    assert run.load_in_outage <= load
    assert run.seconds_to_recover <= min(10, bare.seconds_to_recover - 3)


@pytest.mark.parametrize(
    ("processes", "load", "seconds", "failed"),
    [(50, 0.4, 0, 0.13), pytest.param(500, 0.8, 9, 0.26, marks=pytest.mark.release)],
)
def test_adaptive_limit_sends_what_the_server_can_carry_out(
    processes, load, seconds, failed
):
    """So a fleet of 50 is back with the server; one of 500 is hardly better off."""
    run = simulate("adaptive limit", processes)

    assert run.load_in_outage <= load
    assert run.seconds_to_recover <= seconds
    assert 1 - run.success <= failed


@pytest.mark.release
@pytest.mark.parametrize(
    ("processes", "load", "later"), [(50, 1.03, 2), (500, 1.17, 5)]
)
def test_budget_alone_does_little_harm(processes, load, later):
    """It sends hardly more than clients without retries do, and is back about then."""
    run, bare = (
        simulate(client, processes) for client in ("budget alone", "no retries")
    )

    assert run.load_in_outage <= load
    assert run.seconds_to_recover <= bare.seconds_to_recover + later


@pytest.mark.release
@fleets
def test_plain_retries_never_let_go(processes):
    """Without a budget nothing succeeds any more, long after the dip is over."""
    end = storm.DIP.stop + 110
    run = simulate("3 retries", processes, scale=10, duration=end)

    assert run.seconds_to_recover is None
    assert 0 == sum(run.answered[storm.DIP.stop :])


@pytest.mark.release
@fleets
def test_budget_ends_retries_where_nothing_succeeds(processes):
    """When everything fails, a process retries less often than the brake allows."""
    fleet = processes_without_an_answer("budget alone", processes)
    retries = [each.by_replica.total() - each.calls.total() for each in fleet]

    assert not any(each.answered.total() for each in fleet)
    assert 0 < max(retries) <= 3 - 1


@pytest.mark.release
@pytest.mark.parametrize(("processes", "most"), [(50, 0.1), (500, 0.4)])
def test_standard_chain_goes_on_trying(processes, most):
    """When everything fails it sends little, but every process asks now and then."""
    fleet = processes_without_an_answer("standard chain", processes)
    calls, attempts = (
        sum(counts.total() for counts in counted)
        for counted in zip(
            *((each.calls, each.by_replica) for each in fleet), strict=True
        )
    )

    assert attempts / calls <= most
    assert all(any(each.by_replica[0, n] for n in range(45, 60)) for each in fleet)


@pytest.mark.release
def test_page_shows_these_figures():
    """The table of the page is what the simulation prints in full size."""
    path = DOCS / "explanation" / "retry-storms.csv"
    with path.open(encoding="utf-8", newline="") as file:
        _, *shown = csv.reader(file)
    runs = [
        (client, processes)
        for processes in (50, 500)
        for client in ("no retries", "budget alone", "standard chain", "adaptive limit")
    ]

    measured = [list(storm.row_of(*run, simulate(*run))) for run in runs]

    assert measured == [row for row in shown if row[0] != "3 retries"]
