"""A queue of calls, first come, first served."""

from __future__ import annotations

import asyncio
import gc
import math
import weakref
from contextlib import suppress
from contextvars import ContextVar, copy_context
from itertools import count

import pytest
from calls import http

from aioretry_smithy._context.holdings import FetchHoldings
from aioretry_smithy._policies.queues import WaitQueue, unless_held


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def waiting(queue, until=math.inf, given_back=None):
    """Begin to wait in a task."""
    give_back = [].append if given_back is None else given_back.append
    return asyncio.ensure_future(queue.wait(until, give_back))


async def test_they_are_served_in_order_of_arrival():
    """Each call gets what was made for it."""
    queue, numbers = WaitQueue(), count(1)
    tasks = [waiting(queue) for _ in range(3)]
    await settle()

    while queue.serve(lambda: next(numbers)):
        pass

    assert [1, 2, 3] == await asyncio.gather(*tasks)
    assert 0 == len(queue)


async def test_who_has_waited_long_enough_gets_nothing():
    """The others wait on."""
    queue = WaitQueue()
    short, long = waiting(queue, 1.0), waiting(queue, 2.0)
    await asyncio.sleep(1.5)
    queue.serve(lambda: "it")

    assert [None, "it"] == await asyncio.gather(short, long)


async def test_what_is_handed_to_a_cancelled_call_is_given_back():
    """It was handed out before the call could leave."""
    queue, given_back = WaitQueue(), []
    task = waiting(queue, given_back=given_back)
    await settle()
    queue.serve(lambda: "it")
    task.cancel()

    assert [True] == [
        isinstance(each, asyncio.CancelledError)
        for each in await asyncio.gather(task, return_exceptions=True)
    ]
    assert ["it"] == given_back


async def test_a_cancelled_call_is_not_served():
    """Though it has not left yet."""
    queue = WaitQueue()
    gone, next_one = waiting(queue), waiting(queue)
    await settle()
    gone.cancel()
    queue.serve(lambda: "it")

    assert "it" == await next_one


async def test_what_cannot_be_made_is_raised_where_it_is_waited_for():
    """Who serves has no part in it."""
    queue = WaitQueue()
    first, second = waiting(queue), waiting(queue)
    await settle()

    def fail():
        raise KeyError("no")

    assert queue.serve(fail)
    assert queue.serve(lambda: "it")
    with pytest.raises(KeyError):
        await first
    assert "it" == await second


async def test_a_cancelled_call_is_cancelled_though_nothing_could_be_made():
    """What failed is not lost on the way: nobody asks for it."""
    queue, given_back = WaitQueue(), []
    task = waiting(queue, given_back=given_back)
    await settle()
    queue.serve(lambda: {}["no"])
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert [] == given_back


async def test_a_call_whose_time_is_up_may_be_cancelled():
    """There is nothing to give back."""
    queue, given_back = WaitQueue(), []
    task = waiting(queue, 1.0, given_back)
    await settle()
    queue.expire(1.0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert [] == given_back


async def test_what_no_future_can_raise_is_wrapped():
    """As in a generator."""
    queue = WaitQueue()
    task = waiting(queue)
    await settle()
    queue.serve(iter(()).__next__)

    with pytest.raises(RuntimeError) as caught:
        await task
    assert StopIteration is type(caught.value.__cause__)


async def test_what_ends_a_program_is_raised_here_too():
    """And the call does not wait for ever."""
    queue = WaitQueue()
    task = waiting(queue)
    await settle()

    def leave():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        queue.serve(leave)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_is_freed_without_the_garbage_collector():
    """No frame that it has knows it."""
    queue = WaitQueue()
    task = waiting(queue)
    await settle()
    known = []

    class OwnError(Exception):
        pass

    def fail():
        error = OwnError()
        known.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    gc.collect()
    gc.disable()
    try:
        queue.serve(fail)
        with suppress(OwnError):
            await task
        del task
        await settle()

        assert None is known[0]()
    finally:
        gc.enable()


async def test_things_are_made_in_the_context_of_the_call():
    """A listener that is told of it is part of the call's attempt."""
    variable: ContextVar[str] = ContextVar("variable")
    queue = WaitQueue()

    async def wait(name):
        variable.set(name)
        return await queue.wait(math.inf, [].append)

    tasks = [asyncio.ensure_future(wait(name)) for name in "ab"]
    await settle()
    while queue.serve(variable.get):
        pass

    assert ["a", "b"] == await asyncio.gather(*tasks)


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
