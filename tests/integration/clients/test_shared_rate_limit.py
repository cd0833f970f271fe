"""Four processes share a rate, which a real Redis keeps."""

import asyncio
import time
from itertools import pairwise

import pytest

pytest.importorskip("limits.aio")  # "limits" is a folder of these tests too
pytest.importorskip("redis.asyncio")

PROCESSES = 4

pytestmark = pytest.mark.long


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
