"""A trace of real calls: concurrent ones, with retries, hedges and calls inside."""

from __future__ import annotations

import asyncio
import io
import json
from itertools import count

from aiohttp import web
from chains import connected, retrying

from aioretry_smithy import HedgingClient, capture_logs, rpc
from aioretry_smithy._log.trace_events import TraceWriter


def answers():
    """Return a handler that fails at times, and is slow at others."""
    numbers = count()

    async def answer(request):
        number = next(numbers)
        await asyncio.sleep(0.03 if number % 3 else 0.0)
        return web.Response(status=200 if number % 4 else 503, text="a")

    return answer


def overlapping(events):
    """Return the slices that begin inside another one of their lane, and end after."""
    found, opened = [], {}
    for event in sorted(events, key=lambda event: event["ts"]):
        end = event["ts"] + event["dur"]
        around = opened.setdefault(event["tid"], [])
        while around and around[-1] <= event["ts"]:
            around.pop()
        if around and end > around[-1]:
            found.append(event)
        around.append(end)
    return found


async def test_lanes_of_real_calls(aiohttp_server):
    """Nothing overlaps, and what is no hedge lies on the lane of its call."""
    app = web.Application()
    app.router.add_get("/", answers())
    server = await aiohttp_server(app)
    hedges = HedgingClient.new_decorator(0.01)

    async with connected(server.make_url("/"), hedges, retrying(0.01)) as client:

        @rpc()
        async def fetch():
            for _ in range(3):
                async with client.get("/") as response:
                    await response.read()

        with capture_logs() as logs:
            await asyncio.gather(*(fetch() for _ in range(8)))

    file = io.StringIO()
    with TraceWriter(file) as trace:
        for log in logs:
            if log.request_method is None:
                trace.add(log.to_dict())
    events = json.loads(file.getvalue())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    beside = {
        event["tid"] for event in events if "beside" in event["args"].get("name", "")
    }

    assert 0 == trace.skipped
    assert [] == overlapping(slices)
    assert 8 * 4 == sum(event["cat"] == "call" for event in slices)
    # A wait, too, unless hedges spare all retries, as they may on a busy machine.
    assert {"call", "attempt", "hedge"} <= {event["cat"] for event in slices}
    cats = {event["cat"] for event in slices if event["tid"] in beside}
    # Calls, too, where a clock of milliseconds lets one end as another begins.
    assert "hedge" in cats
