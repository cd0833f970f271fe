"""A place of a limit, as the calls inside its attempt see it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import copy_context

import pytest
from calls import http
from chains import connected

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
)
from aioretry_smithy._context.holdings import FetchHoldings, holdings_of, is_held
from aioretry_smithy.testing import ScriptedTransport


async def test_place_is_given_back_once():
    """What the attempt has taken a second time stays with it."""
    limit = ConcurrencyLimit.fixed(2)
    around, inside = http("http://shop/"), http("http://shop/inner")
    holdings = holdings_of(around)
    loop = around.call.loop
    one, two = (limit._try_enter_in(loop) for _ in "12")
    one.hold(holdings)
    two.hold(holdings)
    one.release()
    one.release()

    assert (1, True) == (limit.in_flight, is_held(inside, limit))

    two.release()

    assert (0, False) == (limit.in_flight, is_held(inside, limit))
    holdings.end()


@pytest.mark.virtual_time
@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("is_released", [True, False])
async def test_permit_that_comes_as_a_fetch_is_cancelled_is_released(
    turns, is_released
):
    """Whether the request inside the fetch had it by then or not, or was refused."""
    limit, context = ConcurrencyLimit.fixed(1), copy_context()
    loop = asyncio.get_running_loop()
    FetchHoldings().enter_in(context)
    held = limit._try_enter_in(loop)
    limiting = ConcurrencyLimitingClient.new_decorator(limit, timeout=2.0)
    async with connected("http://shop/", ScriptedTransport([200]), limiting) as session:

        async def fetch():
            async with session.get("/token"):
                pass

        task = loop.create_task(fetch(), context=context)
        await asyncio.sleep(1.0 if is_released else 2.0)
        if is_released:
            held.release()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError, ConcurrencyLimitError):
            await task
        held.release()

    assert (0, 0) == (limit.in_flight, limit.pending)
