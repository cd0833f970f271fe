"""The log of a call, collected in a block or found at what the call ended with."""

import asyncio
import gc
import math
import pickle
import weakref

import pytest
from calls import REQUEST, begin, end, end_call, function, http, leave
from chains import URL, notes_of, response_of, retrying, session

from aioretry_smithy import (
    RequestLog,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
    new_response,
)
from aioretry_smithy._log.request_log import add_notes
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


async def test_log_of_a_response():
    """A response leads to the log of the call, not of its last attempt."""
    async with session([503, 200], retrying()) as client, client.get(URL) as response:
        log = RequestLog.of(response)

    assert log is log.root
    assert 2 == log.total_attempts


async def test_log_of_an_exception():
    """An exception from a decorated session leads to the log too."""
    with pytest.raises(TimeoutError) as caught:
        await response_of(session([TimeoutError()], retrying(RetryStrategy.never())))

    assert TimeoutError is type(RequestLog.of(caught.value).response_cause)


def logged():
    ctx, error = begin(), ValueError()
    leave(ctx, error)
    return error, ctx.log


async def test_log_of_a_wrapped_exception():
    """Libraries wrap what we raise, with ``from`` or by raising while handling it."""
    inner, log = logged()
    explicit, implicit, both = KeyError(), KeyError(), KeyError()
    explicit.__cause__ = inner
    implicit.__context__ = explicit
    both.__cause__, both.__context__ = implicit, KeyError()

    assert log is RequestLog.of(explicit)
    assert log is RequestLog.of(implicit)
    assert log is RequestLog.of(both)


async def test_cause_goes_before_context():
    """Of two calls that failed, the one that was named as the cause is meant."""
    cause, log = logged()
    context, _ = logged()
    outer = KeyError()
    outer.__cause__, outer.__context__ = cause, context

    assert log is RequestLog.of(outer)


async def test_context_is_found_behind_a_cause_without_a_log():
    """A cause that leads nowhere does not hide the context."""
    outer, (context, log) = KeyError(), logged()
    outer.__cause__, outer.__context__ = ValueError(), context

    assert log is RequestLog.of(outer)


async def test_cycles_and_long_chains_end():
    """A chain that bites its tail is searched once; ten thousand links are fine."""
    first, second = KeyError(), KeyError()
    first.__cause__, second.__context__ = second, first
    assert RequestLog.of(first, None) is None
    error, log = logged()
    for _ in range(10_000):
        error, inner = KeyError(), error
        error.__cause__ = inner

    assert log is RequestLog.of(error)


@pytest.mark.parametrize("source", [ValueError("x"), None, 5, "text", object(), dict])
async def test_what_has_no_log(source):
    """Without a log there is the default, or an error that says so."""
    assert math.inf == RequestLog.of(source, math.inf)
    assert RequestLog.of(source, default=None) is None

    with pytest.raises(
        LookupError, match=r"^no log: .* of a decorated session or function$"
    ):
        RequestLog.of(source)


async def test_plain_response_has_no_log():
    """A response that no decorated session returned is told apart."""
    with pytest.raises(LookupError):
        RequestLog.of(new_response(REQUEST))


def fail(ctx, error, attempts=2):
    """End a call with a failure, after so many attempts that ended with it."""
    for _ in range(attempts):
        attempt = ctx.derive(ctx.request)
        end(attempt, error)
    leave(ctx, error)
    end_call(ctx, attempt)


async def test_notes_tell_every_attempt():
    """An exception gets one note per attempt, in order."""
    ctx = begin()
    first = ctx.derive(ctx.request)
    await asyncio.sleep(0.25)
    end(first, 500, delay=1.0)
    end(ctx.derive(ctx.request), TimeoutError())
    error = TimeoutError()
    add_notes(ctx.log, error)

    assert [
        "attempt 1: 500 Internal Server Error, 0.250 s, then waited 1.000 s (backoff)",
        "attempt 2: TimeoutError, 0.000 s",
    ] == notes_of(error)


async def test_notes_of_an_earlier_call_go():
    """An exception that is raised again and again does not collect notes for ever."""
    error = TimeoutError()
    error.add_note("the caller's own")
    for attempts in (3, 2, 2):
        ctx = begin()
        for _ in range(attempts):
            end(ctx.derive(ctx.request), error)
        add_notes(ctx.log, error)
    assert [
        "the caller's own",
        "attempt 1: TimeoutError, 0.000 s",
        "attempt 2: TimeoutError, 0.000 s",
    ] == notes_of(error)
    add_notes(begin().log, error)

    assert ["the caller's own"] == notes_of(error)


async def test_exception_keeps_the_notes_of_calls_inside():
    """One that ends a call inside and the call around it has the notes of both."""
    outer, error = function("fetch"), TimeoutError("late")
    first, second = outer.derive(outer.request), outer.derive(outer.request)
    end(first, LookupError(), delay=1.0)
    fail(http("http://example.com/", second.log), error)
    end(second, error)
    leave(outer, error, is_from_inside=True)

    assert [
        "attempt 1: TimeoutError: late, 0.000 s",
        "attempt 2: TimeoutError: late, 0.000 s",
        "attempt 1 of fetch: LookupError, 0.000 s, then waited 1.000 s (backoff)",
        "attempt 2 of fetch: TimeoutError: late, 0.000 s",
    ] == notes_of(error)
    assert error.__notes__ == pickle.loads(pickle.dumps(error)).__notes__


async def test_exception_keeps_notes_through_a_call_that_adds_none():
    """A call between two others, which made one attempt, takes nothing away."""
    outer, error = function("outer"), TimeoutError()
    between = function("between", outer.log)
    fail(http("http://example.com/", between.log), error)
    for ctx in between, outer:
        leave(ctx, error, is_from_inside=True)

    assert 2 == len(error.__notes__)


async def test_exception_loses_the_notes_of_another_call_inside():
    """One that is raised again and again has the notes of its last way out."""
    outer, error = function("outer"), TimeoutError()
    for attempts in (3, 2):
        fail(function("inner", outer.log), error, attempts)
    leave(outer, error, is_from_inside=True)

    assert [
        "attempt 1 of inner: TimeoutError, 0.000 s",
        "attempt 2 of inner: TimeoutError, 0.000 s",
    ] == notes_of(error)


async def test_names_of_calls_are_masked_and_escaped():
    """A call that is named after its URL has no secret in its notes."""
    ctx, error = function("http://user:S3CR3T@example.com/\n"), TimeoutError()
    fail(ctx, error)

    assert (
        r"attempt 1 of http://****@example.com/\n: TimeoutError, 0.000 s"
        == (notes_of(error)[0])
    )
