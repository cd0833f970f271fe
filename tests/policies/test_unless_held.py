"""A wait for what the attempt around may come to hold."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from contextvars import copy_context

import pytest
from calls import http

from aioretry_smithy._context.holdings import FetchHoldings
from aioretry_smithy._policies.queues import WaitQueue, unless_held


@pytest.mark.parametrize("turns", range(6))
async def test_what_comes_as_the_fetch_is_cancelled_is_given_back(turns):
    """Whether it was handed over by then or not."""
    queue, given_back, context = WaitQueue(), [], copy_context()
    FetchHoldings().enter_in(context)
    ctx = http("http://shop/")

    async def wait():
        waiting = queue.wait(math.inf, given_back.append)
        return await unless_held(waiting, ctx, (queue,), given_back.append)

    task = asyncio.get_running_loop().create_task(wait(), context=context)
    for _ in range(4):
        await asyncio.sleep(0)
    queue.serve(lambda: "it")
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    got = []
    with suppress(asyncio.CancelledError):
        got.append(await task)
    await asyncio.sleep(0.1)

    assert ["it"] == got + given_back


async def test_a_wait_that_fails_as_the_fetch_is_cancelled_gives_nothing_back():
    """There is nothing."""
    given_back, context = [], copy_context()
    FetchHoldings().enter_in(context)
    ctx = http("http://shop/")

    async def fail():
        raise KeyError("no")

    async def wait():
        await unless_held(fail(), ctx, (), given_back.append)

    task = asyncio.get_running_loop().create_task(wait(), context=context)
    for _ in range(2):
        await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert [] == given_back
