"""Calls made inside an attempt: one deadline, one log, no options of the outside."""

import asyncio
import contextlib
import contextvars
import gc
import threading
import weakref

import aiohttp
import pytest
from chains import NOW, URL, notes_of, now, retrying, session, silence

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    RequestLog,
    ResponseTimeoutError,
    RetryConfig,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    capture_logs,
    client_decorator,
    request_options,
    rpc,
)


def retried(strategy=None, attempt_timeout=3.0, **settings):
    """Retry a function whose attempts have so many seconds."""
    strategy = strategy or RetryRule(
        exceptions=[KeyError], on_timeout=True, backoff=NOW
    )
    return RetryingRpcClient.new_decorator(
        strategy, attempt_timeout=attempt_timeout, **settings
    )


def names(log):
    """Return the names of a log, of its attempts' calls, and so on, nested."""
    records = log.children or (log,)
    return [log.name, *([names(call) for call in each.calls] for each in records)]


async def get(client):
    return await client.get(URL)


inner_get = rpc(name="inner")(get)


async def log_of(call, answers, *inside, kind=None, **settings):
    """Make a call with a session, which fails with a kind of error, for its log."""
    async with session(answers, *inside, **settings) as client:
        with capture_logs() as logs:
            if kind is None:
                await call(client)
            else:
                with pytest.raises(kind):
                    await call(client)
    return logs[0]


class Large:
    """Something that nobody is to keep."""


@pytest.fixture
def _without_collector():
    """Find out what only the collector would free."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


without_collector = pytest.mark.usefixtures("_without_collector")


async def test_request_inside_has_no_more_time_than_its_attempt():
    """Its session may allow more time; the attempt times out, and is retried."""
    operation = rpc(retried(max_total_attempts=2))(get)
    inside = retrying(1.0)
    log = await log_of(
        operation, [silence] * 2, inside, kind=AttemptTimeoutError, timeout=60.0
    )

    assert ("attempt 2 had 3.000 s", 6.0) == (str(log.response_cause), now())


@pytest.mark.parametrize("decorators", [[retried(max_total_attempts=1)], []])
async def test_limit_of_a_request_that_is_shorter_stays(decorators):
    """The attempt has time left or no limit, and the failure is the request's."""
    operation = rpc(*decorators)(get)
    kind = ResponseTimeoutError
    log = await log_of(operation, [silence], kind=kind, timeout=2.0)

    assert ("the call had 2.000 s", 2.0) == (str(log.response_cause), now())


@pytest.mark.parametrize("seconds", [None, 9.0])
async def test_no_block_takes_a_call_beyond_its_attempt(seconds):
    """Nor does it where the function itself has the block."""

    @rpc(retried(max_total_attempts=1))
    async def operation(client):
        with request_options(response_timeout=seconds):
            await client.get(URL)

    await log_of(operation, [silence], kind=AttemptTimeoutError)

    assert 3.0 == now()


async def test_no_decorator_moves_the_deadline_beyond_the_attempt():
    """It may make it shorter, and longer up to there."""
    limits = []

    @client_decorator
    async def moving(delegate, ctx, request):
        for seconds in (60.0, 1.0):
            ctx.set_response_timeout(seconds)
            limits.append(ctx.remaining())
        ctx.clear_response_timeout()
        limits.append(ctx.remaining())
        return await delegate.execute(ctx, request)

    await log_of(rpc(retried())(get), [200], moving)

    assert [3.0, 1.0, 3.0] == limits


async def test_call_after_the_end_of_its_attempt_has_no_time():
    """A function that goes on after it was cut calls nothing any more."""

    @rpc(response_timeout=60.0)
    async def inner():
        raise AssertionError

    @rpc(retried(max_total_attempts=1))
    async def outer():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(9.0)
        await asyncio.sleep(1.0)
        await inner()

    with (
        capture_logs() as logs,
        pytest.raises(AttemptTimeoutError, match=r"^attempt 1 had 3\.000 s$") as caught,
    ):
        await outer()

    (call,) = logs[0].children[0].calls
    assert "the call had 0.000 s" == str(caught.value.__cause__)
    assert (0.0, False) == (call.response_timeout, call.sent)


async def test_logs_of_calls_are_in_that_of_their_attempt():
    """In order, of both kinds, and of tasks started in it."""
    attempts = iter([KeyError, None])

    @rpc(retried(), name="outer")
    async def outer(client):
        await client.get(URL)
        await asyncio.create_task(inner_get(client))
        if error := next(attempts):
            raise error

    made = [["GET", []], ["inner", [["GET", []]]]]
    assert ["outer", made, made] == names(await log_of(outer, [200] * 4))


async def test_calls_are_roots_of_their_own():
    """Nothing leads from them to the attempt that they are part of."""
    log = await log_of(rpc(name="outer")(get), [503, 200], retrying(0.0))

    (call,) = log.calls
    assert (None, None, call) == (call.parent, call.attempt, call.root)
    assert [503, 200] == [child.response_status for child in call.children]


async def test_call_that_a_decorator_of_a_session_makes_is_the_function_s():
    """An attempt of a request has no calls of its own."""
    other = session([200])

    @client_decorator
    async def asking(delegate, ctx, request):
        await other.get(f"{URL}/token")
        return await delegate.execute(ctx, request)

    async with other:
        log = await log_of(rpc(retried())(get), [200], asking, retrying(0.0))

    calls = log.children[0].calls
    assert ["/orders", "/orders/token"] == [call.request_url.path for call in calls]
    assert ((), ()) == (calls[0].calls, calls[0].children[0].calls)


async def test_call_in_the_loop_of_another_thread_has_its_own_clock():
    """Its log is in the tree; what is left of the attempt there, nobody can tell."""
    limits = []

    @client_decorator
    async def seeing(delegate, ctx, request):
        limits.append(ctx.deadline)
        return await delegate.execute(ctx, request)

    async def elsewhere():
        async with session([200], seeing) as client:
            limits.append((await client.get(URL)).status)

    @rpc(retried(), name="outer")
    async def outer():
        thread = threading.Thread(
            target=contextvars.copy_context().run, args=(asyncio.run, elsewhere())
        )
        thread.start()
        thread.join()

    with capture_logs() as logs:
        await outer()

    assert (limits[0] - 3.0 > now(), 200) == (True, limits[1])
    assert [["outer", [["GET", []]]]] == [names(log) for log in logs]


async def test_first_hundred_calls_are_kept():
    """The others are counted."""

    @rpc(name="outer")
    async def outer(client):
        for _ in range(103):
            await client.get(URL)

    log = await log_of(outer, [200] * 103)

    assert (100, 3) == (len(log.calls), log.dropped_calls)


async def test_exception_leads_to_the_outermost_log():
    """By way of the inner calls that it came through."""
    error = aiohttp.ServerDisconnectedError()
    outer = rpc(retried(), name="outer")(inner_get)
    await log_of(outer, [error], kind=aiohttp.ServerDisconnectedError)

    assert ["outer", [["inner", [["GET", []]]]]] == names(RequestLog.of(error))


async def test_exception_tells_of_the_attempts_of_each_call():
    """One note for each attempt; the inner ones first."""

    @rpc(retried(RetryRule(exceptions=[KeyError], backoff=NOW)), name="outer")
    async def outer(client):
        if now() < 1.0:
            await asyncio.sleep(1.0)
            raise KeyError("early")
        await client.get(URL)

    once, last = ConnectionResetError("once"), ConnectionResetError("last")
    inner = retrying(1.0, max_total_attempts=2)
    await log_of(outer, [once, last], inner, kind=ConnectionResetError)

    assert [
        "attempt 1: ConnectionResetError: once, 0.000 s, then waited 1.000 s (backoff)",
        "attempt 2: ConnectionResetError: last, 0.000 s",
        "attempt 1 of outer: KeyError: 'early', 1.000 s, then waited 0.000 s (backoff)",
        "attempt 2 of outer: ConnectionResetError: last, 1.000 s",
    ] == notes_of(last)


async def test_exception_that_is_raised_again_loses_its_old_notes():
    """They are about another call."""
    error = KeyError("always")

    @rpc(retried(max_total_attempts=2), name="outer")
    async def outer():
        raise error

    for _ in range(2):
        with pytest.raises(KeyError):
            await outer()

    assert 2 == len(error.__notes__)


async def test_captures_around_collect_outermost_calls():
    """One inside a function collects what that calls."""
    inside = []

    @rpc(name="outer")
    async def outer(client):
        await client.get(URL)
        with capture_logs() as logs:
            await client.get(URL)
        inside.extend(logs)
        await client.get(URL)

    async with session([200] * 4) as client:
        with capture_logs() as logs:
            await outer(client)
            await client.get(URL)

    assert ["outer", "GET"] == [log.name for log in logs]
    assert logs[0].calls[1:2] == (*inside,)


async def test_options_around_do_not_reach_the_calls_inside():
    """But for the attributes; a block in the function applies there."""
    seen = []

    @client_decorator
    async def seeing(delegate, ctx, request):
        options = ctx.options
        seen.append((options.retry, options.idempotent, ctx.attributes))
        return await delegate.execute(ctx, request)

    config = RetryConfig(RetryStrategy.never())

    @rpc()
    async def outer(client):
        await client.get(URL)
        with request_options(retry=config, attributes={"page": 1}):
            await client.get(URL)
        await client.get(URL)

    options = {"retry": RetryConfig.no_retry(), "idempotent": True}
    tenant = {"tenant": 7}
    with request_options(**options, response_timeout=7.0, attributes=tenant):
        log = await log_of(outer, [200] * 3, seeing)

    inherited = (None, None, tenant)
    assert [inherited, (config, None, {**tenant, "page": 1}), inherited] == seen
    assert 7.0 == log.response_timeout


async def test_task_that_outlives_its_attempt_is_free():
    """Its later calls have no deadline of that, and are outermost calls."""
    tasks = []

    async def later(client):
        await asyncio.sleep(5.0)
        return await client.get(URL)

    @rpc(retried(), name="outer")
    async def outer(client):
        tasks.append(asyncio.create_task(later(client)))

    async with session([200]) as client:
        with capture_logs() as logs:
            await outer(client)
            response = await tasks[0]

    assert (5.0, 200) == (now(), response.status)
    assert [["outer", []], ["GET", []]] == [names(log) for log in logs]


@without_collector
async def test_task_that_lives_on_keeps_nothing_of_the_attempt():
    """Neither the arguments of the call, nor its context."""
    tasks = []

    @rpc()
    async def outer(argument):
        tasks.append(asyncio.create_task(asyncio.sleep(5.0)))
        return Large()

    argument = Large()
    kept = [weakref.ref(argument), weakref.ref(await outer(argument))]
    del argument
    await asyncio.sleep(1.0)
    found = [each() for each in kept]
    await tasks[0]

    assert [None, None] == found


@without_collector
async def test_log_keeps_neither_arguments_nor_results():
    """Nor does any view of it."""

    @rpc(retried())
    async def outer(argument, *, named):
        return Large()

    arguments = Large(), Large()
    with capture_logs() as logs:
        result = await outer(arguments[0], named=arguments[1])
    kept = [weakref.ref(each) for each in (*arguments, result)]
    del arguments, result

    assert ([None] * 3, 1) == ([each() for each in kept], len(logs))


@without_collector
async def test_failed_call_leaves_no_cycle():
    """An exception of it is freed with the last reference."""

    class LostError(Exception):
        pass

    @rpc(retried(RetryRule(exceptions=[LostError], backoff=NOW), max_total_attempts=2))
    async def outer(argument):
        if argument is None:
            await asyncio.sleep(9.0)
        raise LostError

    async def fail(argument):
        try:
            await outer(argument)
        except (LostError, TimeoutError) as error:
            return weakref.ref(error)

    argument = Large()
    kept = [await fail(argument), await fail(None), weakref.ref(argument)]
    del argument

    assert [None] * 3 == [each() for each in kept]


async def test_trees_of_many_calls_at_once_do_not_mix():
    """Each has its own requests, and no others."""

    @rpc(retried(RetryRule(exceptions=[KeyError], backoff=Backoff.fixed(0.1))))
    async def outer(client, number):
        for step in range(3):
            await asyncio.sleep(0.01 * (number % 7))
            await client.get(f"{URL}/{number}/{step}")
        if number % 2 and len(seen := asked.setdefault(number, [])) < 1:
            seen.append(now())
            raise KeyError

    asked = {}
    async with session([200] * 900) as client:
        with capture_logs() as logs:
            await asyncio.gather(*(outer(client, number) for number in range(200)))

    trees = [
        [[call.request_url.path for call in each.calls] for each in log.children]
        for log in logs
    ]
    assert [
        [[f"/orders/{number}/{step}" for step in range(3)]] * (1 + number % 2)
        for number in range(200)
    ] == trees
