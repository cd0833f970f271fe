"""Requests that wait at circuits which processes open and close together."""

from __future__ import annotations

import asyncio

import pytest
from chains import session
from circuits import RestartingServer, end_of, waiting_at
from fake_redis import FakeRedis, Process, heard, processes

from aioretry_smithy import CircuitState, FailFastError

CLOSED, OPEN, HALF_OPEN, _ = CircuitState
CHANNEL = "aioretry_smithy:circuit-breakers"
ROW = {
    "consecutive_failures": 2,
    "circuit_open_window": 1.0,
    "trial_request_interval": 1.0,
}


@pytest.fixture
def redis():
    return FakeRedis(latency=0.001)


async def test_one_process_tries_for_those_who_wait_in_all(redis):
    """The others go on when they hear of it."""
    server = RestartingServer(1.0, answers_in=0.25)
    async with processes(Process(redis, 0.9, **ROW), Process(redis, 0.1, **ROW)) as (
        one,
        other,
    ):
        other.report(False)
        one.report(False, False)
        await heard()
        assert [OPEN, OPEN] == [one.state, other.state]
        transport = server.transport()
        async with (
            session(transport, waiting_at(one.breaker)) as first,
            session(transport, waiting_at(other.breaker)) as second,
        ):
            ends = await asyncio.gather(
                *(end_of(each, 0.2) for each in (first, first, second, second))
            )

    assert [200] * 4 == [status for _, status in ends]
    assert 4 == len(server.asked)
    assert [1.1] == [round(at, 1) for at in server.asked[:1]]
    assert [1.4, 1.6, 1.6, 1.6] == sorted(round(at, 1) for at, _ in ends)


@pytest.mark.parametrize("slow", [False, True])
async def test_whether_the_server_was_slow_is_told(redis, slow):
    """Whoever follows lets nobody wait then."""
    server = RestartingServer(1.5 if slow else 0.5, took=1.25 if slow else 0.0)
    async with processes(Process(redis, 0.9, **ROW), Process(redis, 0.1, **ROW)) as (
        one,
        other,
    ):
        other.report(False)
        async with (
            session(server.transport(), waiting_at(one.breaker)) as first,
            session(server.transport(), waiting_at(other.breaker)) as second,
        ):
            await asyncio.gather(end_of(first), end_of(first))
            await heard()
            assert [OPEN, OPEN] == [one.state, other.state]
            end, status = await end_of(second)

    expected = (1.3, FailFastError) if slow else (1.1, 200)
    assert expected == (round(end, 1), status)
