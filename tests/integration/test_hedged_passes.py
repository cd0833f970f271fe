"""Passes through a hedging client in one attempt close only their own responses."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from chains import connected, retrying
from races import hedging
from two_sends import first_answer, first_of_two, last_answer

from aioretry_smithy import RequestLog

SIZE = 1 << 20
BODY = bytes(range(256)) * (SIZE // 256)
QUICK, LATE, SLOW = 0.02, 0.1, 2.0
"""Seconds: less, and more, than the delay of 0.05 s; so long that it loses."""


class Server:
    """Sends a body after as many seconds as are next; soon, if there are none."""

    def __init__(self, *seconds):
        self.seconds = iter(seconds)

    async def respond(self, request):
        # A busy machine may have hedges sent that are not needed.
        await asyncio.sleep(next(self.seconds, QUICK))
        response = web.StreamResponse(headers={"Content-Length": str(SIZE)})
        await response.prepare(request)
        for start in range(0, SIZE, SIZE // 16):
            await response.write(BODY[start : start + SIZE // 16])
            await asyncio.sleep(0)
        return response


PASSES = {
    "the first pass is quicker": (first_of_two, [QUICK, SLOW, SLOW]),
    "the second pass is quicker": (first_of_two, [SLOW, QUICK, SLOW]),
    "hedges of both": (first_of_two, [SLOW, SLOW, QUICK, QUICK]),
    "the second pass has a loser": (first_answer, [QUICK, SLOW, QUICK]),
    "both have losers": (first_answer, [SLOW, QUICK, SLOW, QUICK]),
    "the first request of the second wins": (first_answer, [QUICK, LATE, SLOW]),
    "the last answer counts": (last_answer, [SLOW, QUICK, SLOW, QUICK]),
}


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("outside", [(), (retrying(),)], ids=["alone", "retrying"])
async def test_what_one_pass_gives_up_closes_nothing_of_another(
    serving, passes, outside
):
    """The body comes whole, and every other connection is closed."""
    twice, seconds = PASSES[passes]
    server = await serving(Server(*seconds).respond)
    chain = hedging(0.05), twice, *outside
    async with connected(server.make_url("/"), *chain) as client:
        async with client.get("/") as response:
            body = await response.read()
        log = RequestLog.of(response)

        assert BODY == body
        assert set() == client.connector._acquired

    assert (200, SIZE, None) == (
        log.response_status,
        log.response_length,
        log.response_cause,
    )
