"""A real chain that ends in the simulated server, and a loop that stands for one."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
import pytest
from simulated import ScriptedServer

from aioretry_smithy import (
    Backoff,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy.testing import simulate
from aioretry_smithy.testing._fleet import CUT, SimulatedProcess, SimulatedReplicas


@asynccontextmanager
async def new_process(builder, *answers):
    """Yield a process whose requests are answered with a status after seconds."""
    process = SimulatedProcess(builder, SimulatedReplicas([ScriptedServer(answers)]))
    async with process.session:
        yield process


def retrying(**settings):
    strategy = RetryStrategy.failsafe(Backoff.fixed(1.5))
    return RetryingClient.new_decorator(strategy, **settings)


async def test_call_is_counted_where_it_began():
    """The attempts of a call count when they are sent, its answer when it began."""
    builder = SessionBuilder().decorator(retrying())
    async with new_process(builder, (503, 0.2), (200, 0.2)) as process:
        await process.call()

    assert {0: 1} == process.calls
    assert {0: 1, 1: 1} == process.attempts
    assert {0: 1} == process.answered


async def test_request_that_a_server_has_when_it_ends_is_cut():
    """The caller sees a broken connection, and a chain sends it again."""
    builder = SessionBuilder().decorator(retrying())
    async with new_process(builder, (CUT, 0.2), (200, 0.2)) as process:
        await process.call()

    assert {0: 1, 1: 1} == process.attempts
    assert {0: 1} == process.answered


async def test_error_status_is_no_answer():
    """A call that ends with a status of 400 or more has failed."""
    async with new_process(SessionBuilder(), (503, 0.1)) as process:
        await process.call()

    assert 0 == process.answered.total()


@pytest.mark.parametrize(
    ("builder", "attempts"),
    [
        (SessionBuilder().response_timeout(1.0), 1),
        (SessionBuilder(timeout=aiohttp.ClientTimeout(1.0)), 1),
        (
            SessionBuilder().decorator(
                retrying(attempt_timeout=1.0, max_total_attempts=2)
            ),
            2,
        ),
    ],
    ids=["of the call", "of aiohttp", "of the attempts"],
)
async def test_timeout_cuts_a_slow_answer(builder, attempts):
    """The chain's time limits end requests, wherever they come from."""
    slow = [(200, 5.0)] * attempts
    async with new_process(builder, *slow) as process:
        await process.call()

    assert 0 == process.answered.total()
    assert attempts == process.attempts.total()
    assert attempts * 1.0 + (attempts - 1) * 1.5 == asyncio.get_running_loop().time()


async def test_without_a_limit_it_waits():
    """A session without any limit waits for the answer."""
    builder = SessionBuilder().response_timeout(None)
    async with new_process(builder, (200, 1000.0)) as process:
        await process.call()

    assert 1 == process.answered.total()


@pytest.mark.parametrize(
    ("base_url", "host"),
    [(None, "server.example"), ("https://orders.example/v1/", "orders.example")],
)
async def test_calls_go_to_the_host_of_the_builder(base_url, host):
    """Settings per host apply as they will; a builder without a host gets one."""
    seen = []

    @client_decorator
    async def look(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        seen.extend([request.url.host, response.url.host])
        return response

    builder = SessionBuilder(base_url).decorator(look)
    async with new_process(builder, (200, 0.1)) as process:
        await process.call()

    assert [host, host] == seen


async def test_mistake_in_a_chain_is_raised():
    """A mistake is not counted as a failed request."""

    @client_decorator
    async def mistaken(delegate, ctx, request):
        raise KeyError("token")

    async with new_process(SessionBuilder().decorator(mistaken)) as process:
        with pytest.raises(KeyError, match="token"):
            await process.call()


def plain_retries():
    """Make the chain that the loop stands for."""
    backoff = Backoff.exponential(0.1, 20.0).with_full_jitter()
    retrying = RetryingClient.new_decorator(
        RetryStrategy.failsafe(backoff), max_total_attempts=4, attempt_timeout=1.0
    )
    return SessionBuilder().decorator(retrying).response_timeout(30.0)


def no_retries():
    """Make a chain that sends each request once."""
    return SessionBuilder().response_timeout(1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{}, {"error_rate": 0.3}, {"outage": None, "restart": "8:3"}],
    ids=["timeouts", "errors", "restart"],
)
def test_loops_do_what_real_chains_do(changes):
    """Each of their counts is that of sessions with the same calls, in each second."""
    run = partial(
        simulate,
        clients=3,
        rate=20.0,
        capacity=25.0,
        duration=20.0,
        **{"outage": "5:5:0.2"} | changes,
    )
    chains = {"plain retries": plain_retries, "no retries": no_retries}
    loops, sessions = run().runs, run(chains).runs

    assert chains.keys() < loops.keys()
    assert sessions == {name: loops[name] for name in chains}
