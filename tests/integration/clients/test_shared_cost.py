"""Two processes spend a rate together, of which calls cost more or less."""

import asyncio

import pytest

pytest.importorskip("limits.aio")  # "limits" is a folder of these tests too
pytest.importorskip("redis.asyncio")

from redis.asyncio import Redis

AMOUNT, LENGTH = 1000, 2
RATE = f"{AMOUNT} per {LENGTH} seconds"

WINDOWS = 3

LATE = 0.15
"""Seconds by which a call may have been counted before it says so."""

pytestmark = pytest.mark.long


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
