"""Processes share a rate, which a real Redis keeps."""

import pytest

pytest.importorskip("limits.aio")  # "limits" is a folder of these tests too
pytest.importorskip("redis.asyncio")

import asyncio
import time
from itertools import pairwise

from redis.asyncio import Redis

pytestmark = pytest.mark.long


PROCESSES = 4


def between(calls, begin, end):
    return len([call for call in calls if begin <= call < end])


def in_two_seconds(calls, after):
    """Count the calls of two seconds that begin in the longest pause of a second."""
    pauses = [(b - a, a) for a, b in pairwise(calls) if after <= a < after + 1.0]
    pause, begin = max(pauses)
    return between(calls, begin + pause / 2, begin + pause / 2 + 2.0)


async def test_processes_together_keep_a_rate(serve, fleet):
    """Of 50 a second, within 5 %; each of them has its share."""
    await serve()
    uri = f"async+redis+unix://{serve.path}"
    await fleet.start("rate_process.py", PROCESSES, uri, "50/second")
    await asyncio.sleep(4.5)
    reports = await fleet.stop()
    calls = sorted(call for report in reports for call in report["calls"])

    assert in_two_seconds(calls, calls[0]) == pytest.approx(100, rel=0.05)
    assert [[]] * PROCESSES == [report["warnings"] for report in reports]
    assert all(len(report["calls"]) > 20 for report in reports)


async def test_calls_go_on_while_the_server_is_away(serve, fleet):
    """Each process warns once; when the server is back, they keep the rate again."""
    await serve()
    uri = f"async+redis+unix://{serve.path}"
    await fleet.start("rate_process.py", PROCESSES, uri, "50/second")
    await asyncio.sleep(0.5)
    await serve.kill()
    killed = time.time()
    await asyncio.sleep(1.5)
    await serve()
    back = time.time()
    await asyncio.sleep(6.0)
    reports = await fleet.stop()
    calls = sorted(call for report in reports for call in report["calls"])

    assert all(between(each["calls"], killed, back) > 50 for each in reports)
    assert in_two_seconds(calls, back + 2.5) == pytest.approx(100, rel=0.05)
    assert [1] * PROCESSES == [len(report["warnings"]) for report in reports]


AMOUNT, LENGTH = 1000, 2
RATE = f"{AMOUNT} per {LENGTH} seconds"

WINDOWS = 3

LATE = 0.15
"""Seconds by which a call may have been counted before it says so."""


async def questions(path):
    """Return how often the server was asked."""
    async with Redis(unix_socket_path=path) as redis:
        stats = await redis.info("commandstats")
    return stats["cmdstat_evalsha"]["calls"]


@pytest.mark.parametrize(
    "costs",
    [("10,50,300", "10,50,300"), ("20", "400")],
    ids=["each of any cost", "one of light calls, one of heavy ones"],
)
async def test_processes_together_spend_no_more_than_a_counter_permits(
    serve, fleet, costs
):
    """And not much less: what is left for no call at the end of a window is lost."""
    await serve()
    uri = f"async+redis+unix://{serve.path}"
    await fleet.start_each("rate_process.py", [(uri, RATE, each) for each in costs])
    await asyncio.sleep(WINDOWS * LENGTH + 0.5)
    asked = await questions(serve.path)
    reports = await fleet.stop()
    calls = sorted(
        call
        for report in reports
        for call in zip(report["calls"], report["costs"], strict=True)
    )
    begun = calls[0][0]

    def spent(begin, until):
        return sum(cost for at, cost in calls if begin <= at < until)

    for window in range(WINDOWS):
        begin = begun + window * LENGTH
        assert spent(begin, begin + LENGTH - LATE) <= AMOUNT
    for at, _ in calls:
        assert spent(at, at + LENGTH - LATE) <= 2 * AMOUNT
    end = begun + WINDOWS * LENGTH
    assert 0.6 * WINDOWS * AMOUNT <= spent(begun, end) <= WINDOWS * AMOUNT
    # A heavy call does not ask all the time whether there is enough for it.
    assert asked <= 10 * len(calls)
    assert [[], []] == [report["warnings"] for report in reports]
