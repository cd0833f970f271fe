"""Collecting the logs of calls whose responses one never sees."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from chains import session

from aioretry_smithy import RequestLog, SessionBuilder, capture_logs, client_decorator
from aioretry_smithy.testing import ScriptedTransport


async def get(path="/", answer=200):
    async with session([answer], base_url="http://h") as client, client.get(path):
        pass


def paths(logs):
    return [log.request_url.path for log in logs]


async def test_block_collects_its_calls():
    """Only calls in the block count, in order, and the list remains after it."""
    await get("/before")
    with capture_logs() as logs:
        await get("/a")
        await get("/b")
    await get("/after")

    assert ["/a", "/b"] == paths(logs)
    assert all(log.is_complete for log in logs)


async def test_log_is_there_when_the_call_starts():
    """Code that hangs can be looked at while it hangs."""
    seen = []

    @client_decorator
    async def look(delegate, ctx, request):
        seen.extend(logs)
        return await delegate.execute(ctx, request)

    chain = SessionBuilder("http://h").decorator(ScriptedTransport([200]))
    async with chain.decorator(look).build() as session:
        with capture_logs() as logs:
            await session.get("/")

    assert seen == logs


async def test_failed_calls_are_collected():
    """A call that raises has a log like any other."""
    with capture_logs() as logs, pytest.raises(TimeoutError):
        await get(answer=TimeoutError())

    assert isinstance(logs[0].response_cause, TimeoutError)


async def test_nested_blocks_each_collect():
    """The inner block takes nothing away from the outer one."""
    with capture_logs() as outer:
        await get("/a")
        with capture_logs() as inner:
            await get("/b")
        await get("/c")

    assert ["/b"] == paths(inner)
    assert ["/a", "/b", "/c"] == paths(outer)


async def test_tasks_started_in_the_block_count():
    """Libraries start tasks; one that outlives the block still reports."""
    with capture_logs() as logs:
        await asyncio.gather(get("/a"), get("/b"))
        late = asyncio.create_task(get("/late"))
    await late

    assert ["/a", "/b", "/late"] == sorted(paths(logs))


async def test_other_tasks_do_not_count():
    """A task that was there before the block is none of its business."""
    started = asyncio.Event()

    async def wait_and_get():
        await started.wait()
        await get("/other")

    other = asyncio.create_task(wait_and_get())
    await asyncio.sleep(0)
    with capture_logs() as logs:
        started.set()
        await other
        await get("/own")

    assert ["/own"] == paths(logs)


async def test_list_that_nobody_has_is_not_kept():
    """A call begun in a block has its context, and may live as long as it likes."""

    async def call_later():
        await asyncio.sleep(1.0)
        await get("/late")

    with capture_logs() as logs:
        await get()
        task = asyncio.ensure_future(call_later())
        await asyncio.sleep(0)
    log = weakref.ref(logs.pop())
    kept = weakref.ref(logs)
    del logs
    gc.collect()

    assert [None, None] == [log(), kept()]
    await task


async def test_block_that_raises_is_closed():
    """A call after a block that ended with an error is not collected."""
    with pytest.raises(ZeroDivisionError), capture_logs() as logs:
        _ = 1 / 0
    await get()

    assert [] == logs


async def test_log_is_found_in_a_group_of_exceptions():
    """A task group wraps what its tasks raise."""
    async with session([TimeoutError()]) as client:
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.TaskGroup() as group:
                group.create_task(client.get("http://localhost/"))

    assert RequestLog.of(caught.value.exceptions[0]) is RequestLog.of(caught.value)


async def test_group_of_several_exceptions_has_no_log():
    """Nobody can say which of the calls is meant; each member has its own."""
    async with session([TimeoutError()]) as client:
        with pytest.raises(TimeoutError) as caught:
            await client.get("http://localhost/")
    group = ExceptionGroup("two", [caught.value, OSError("no call")])

    assert RequestLog.of(caught.value) is RequestLog.of(group.exceptions[0])
    for source in (group, ExceptionGroup("one", [group])):
        assert RequestLog.of(source, None) is None
        with pytest.raises(LookupError):
            RequestLog.of(source)


async def collecting():
    """Be a generator that collects while it is not finished."""
    with capture_logs() as logs:
        yield logs


async def test_block_in_a_generator_may_end_in_another_task():
    """A fixture may be finished by another task; it collects nothing after that."""
    block = collecting()
    logs = await anext(block)
    await get("/in")
    with pytest.raises(StopAsyncIteration):
        await asyncio.create_task(anext(block))
    await get("/after")

    assert ["/in"] == paths(logs)


async def test_block_in_a_generator_may_begin_in_another_task():
    """The task that finishes it keeps the blocks of its own."""
    block = collecting()
    with capture_logs() as own:
        logs = await asyncio.create_task(anext(block))
        await block.aclose()
        await get("/own")

    assert [] == logs
    assert ["/own"] == paths(own)


async def test_blocks_may_end_in_any_order():
    """One that ends late does not bring back one that has ended."""
    first, second = collecting(), collecting()
    early, late = await anext(first), await anext(second)
    await first.aclose()
    await get("/late")
    await second.aclose()
    await get("/after")

    assert [] == early
    assert ["/late"] == paths(late)
