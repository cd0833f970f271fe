"""Retry storms with broken connections among the faults, and their bounds.

The dip of the page, ten times smaller; what each process does by itself is not. Broken
connections are counted in rounds, which must not let a storm begin.
"""

from __future__ import annotations

import asyncio
import random
from functools import cache
from typing import Any

import aiohttp
import pytest
from simulated import simulation_of_the_page

from aioretry_smithy import (
    Backoff,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
)

# One process runs them all: each simulation serves several tests.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("resets")]
storm = simulation_of_the_page()
RESTARTS = (storm.DIP.start, storm.DIP.start + 5, storm.DIP.stop)
SOON = 0.05
"""Seconds after which a request is cut that is not answered before."""


async def cut_at(moment, delegate, ctx, request):
    """Send a request, whose connection breaks at a moment unless that is None."""
    try:
        async with asyncio.timeout_at(moment) as cut:
            return await delegate.execute(ctx, request)
    except TimeoutError:
        if cut.expired():
            raise aiohttp.ServerDisconnectedError from None
        raise


@client_decorator
async def restarting(delegate, ctx, request):
    """Cut all that is under way, three times in the dip."""
    now = asyncio.get_running_loop().time()
    restart = next((moment for moment in RESTARTS if moment > now), None)
    return await cut_at(restart, delegate, ctx, request)


def shedding(share):
    """Cut a share of what comes in the dip, though the server carries it out."""

    @client_decorator
    async def client(delegate, ctx, request):
        now = asyncio.get_running_loop().time()
        is_cut = int(now) in storm.DIP and random.random() < share
        return await cut_at(now + SOON if is_cut else None, delegate, ctx, request)

    return client


def breaking(share):
    """Cut a share of the requests in place of their answers."""

    @client_decorator
    async def client(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        if random.random() < share:
            response.close()
            raise aiohttp.ServerDisconnectedError
        return response

    return client


FAULTS = {
    "restarts": restarting,
    "half of it cut": shedding(0.5),
    "all of it cut": shedding(1.0),
}


def no_retries(faults):
    return SessionBuilder(storm.URL).decorator(faults).response_timeout(1.0)


def budget_alone(faults):
    backoff = Backoff.exponential(0.1, 20.0).with_full_jitter()
    retrying = RetryingClient.new_decorator(
        RetryStrategy.failsafe(backoff),
        attempt_timeout=1.0,
        max_total_attempts=3,
        limiter=RetryBudget.per_host(),
    )
    builder = SessionBuilder(storm.URL).decorator(faults).decorator(retrying)
    return builder.response_timeout(30.0)


def standard_chain(faults, **settings):
    return SessionBuilder.standard(
        storm.URL, attempt_timeout=1.0, inside=[faults], **settings
    )


def adaptive_limit(faults):
    return standard_chain(faults, concurrency="aimd")


@cache
def simulate(chain, processes: int, faults, **settings: Any) -> Any:
    """Simulate once what several tests look at."""
    clients = {"it": lambda: chain(faults)}
    return storm.storm(clients, processes, scale=10, **settings)["it"]


fleets = pytest.mark.parametrize(
    "processes", [50, pytest.param(500, marks=pytest.mark.release)]
)
all_faults = pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)


@fleets
@all_faults
@pytest.mark.parametrize("chain", [standard_chain, adaptive_limit])
def test_standard_chain_helps_the_server(chain, processes, faults):
    """It is back seconds sooner than without retries, and sends hardly more.

    A connection that is cut at once looks like one of a server that is away, so each
    of many slow processes tries a few times before its circuit opens.
    """
    run, bare = (simulate(each, processes, faults) for each in (chain, no_retries))
    most, sooner = (0.75, 3) if processes == 50 else (1.1, 2)

    assert run.load_in_outage <= most
    assert run.seconds_to_recover <= bare.seconds_to_recover - sooner
    assert run.success >= bare.success + 0.05


@all_faults
@pytest.mark.parametrize(
    ("processes", "load", "later"),
    [(50, 1.05, 2), pytest.param(500, 1.2, 5, marks=pytest.mark.release)],
)
def test_budget_alone_does_little_harm(processes, load, later, faults):
    """It sends hardly more than clients without retries do, and is back about then."""
    run, bare = (
        simulate(each, processes, faults) for each in (budget_alone, no_retries)
    )

    assert run.load_in_outage <= load
    assert run.seconds_to_recover <= bare.seconds_to_recover + later


@fleets
@pytest.mark.parametrize(
    ("share", "least"),
    [
        pytest.param(0.01, 0.9995, marks=pytest.mark.release),
        (0.05, 0.999),
        pytest.param(0.1, 0.985, marks=pytest.mark.release),
    ],
)
@pytest.mark.parametrize("chain", [standard_chain, adaptive_limit])
def test_random_breaks_hardly_reach_the_caller(processes, chain, share, least):
    """Where the server is well, the chain hides single failures of it."""
    faults = breaking(share)
    run = simulate(chain, processes, faults, duration=100, outage=None)

    assert least <= run.success
    assert run.attempts_per_call <= 1.12


@pytest.mark.parametrize(
    ("processes", "load"),
    [(50, 1.01), pytest.param(500, 1.1, marks=pytest.mark.release)],
)
def test_budget_ends_retries_where_all_connections_break(processes, load):
    """The first round may cost what was saved, and then the brake is on."""
    run = simulate(budget_alone, processes, breaking(1.0), outage=None)

    assert 0 == run.success
    assert 1 < run.attempts_per_call <= load


@pytest.mark.parametrize(
    ("processes", "most"),
    [(50, 0.1), pytest.param(500, 0.4, marks=pytest.mark.release)],
)
def test_standard_chain_lets_go_where_all_connections_break(processes, most):
    """It sends little, and goes on trying."""
    run = simulate(standard_chain, processes, breaking(1.0), outage=None)

    assert 0 == run.success
    assert run.attempts_per_call <= most
    assert all(sum(run.attempts[n : n + 5]) for n in range(0, 60, 5))
