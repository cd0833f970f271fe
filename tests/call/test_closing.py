"""Waits of calls whose session is closed meanwhile: all of them end at once."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from chains import (
    NOW,
    URL,
    log_of_cancelled,
    now,
    pass_on,
    refused,
    retrying,
    retrying_session,
    session,
)
from circuits import breaker_of, timers, waiting_at

from aioretry_smithy import (
    Backoff,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    DynamicEndpointGroup,
    LoadBalancingClient,
    RateLimit,
    RateLimitingClient,
    RefreshingClient,
    RequestLog,
    RetryListener,
    RetryStrategy,
    client_decorator,
)
from aioretry_smithy.smithy import StandardRetryStrategy
from aioretry_smithy.testing import ScriptedTransport

BASE = "http://localhost"
BEGUN, CLOSED_AT = 0.0625, 0.125


def at_a_circuit():
    breaker = breaker_of(100.0)
    breaker.enter_state(CircuitState.OPEN)
    return waiting_at(breaker, 60.0)


def for_a_place():
    limit = ConcurrencyLimit.fixed(1)
    return ConcurrencyLimitingClient.new_decorator(limit, timeout=60.0)


def for_a_rate():
    return RateLimitingClient.new_decorator(RateLimit(1, per=60.0))


def for_a_shared_rate():
    pytest.importorskip("limits.aio")
    from aioretry_smithy.limits import SharedRateLimit  # noqa: PLC0415

    limit = SharedRateLimit("async+memory://", "1/minute", key="orders")
    return RateLimitingClient.new_decorator(limit)


def for_a_token():
    async def fetch():
        await asyncio.Future()

    return RefreshingClient.new_decorator(fetch)


def for_an_endpoint():
    group = DynamicEndpointGroup(selection_timeout=60.0)
    return LoadBalancingClient.new_decorator(group, service=BASE)


WAITS = [
    at_a_circuit,
    for_a_place,
    for_a_rate,
    for_a_shared_rate,
    for_a_token,
    for_an_endpoint,
]
waits = pytest.mark.parametrize("wait", WAITS, ids=[each.__name__ for each in WAITS])


async def hang(ctx, request):
    """Hold what the request holds, for ever."""
    await asyncio.Future()


@pytest.fixture
async def held():
    """The calls of others, which hold a place or have taken a turn."""
    tasks = []
    yield tasks
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def held_by_another(decorator, tasks):
    """Let another session have what there is."""
    other = session([hang, hang], decorator, base_url=BASE)

    async def call():
        async with other:
            await other.get(URL)

    tasks.append(asyncio.ensure_future(call()))
    await asyncio.sleep(BEGUN)


@waits
@pytest.mark.parametrize(
    "others", [(), (pass_on, retrying(RetryStrategy.failsafe(NOW)))]
)
async def test_each_ends_as_a_call_of_a_closed_session(wait, others, held):
    """At once, and nothing is tried again."""
    decorator = wait()
    await held_by_another(decorator, held)
    transport = ScriptedTransport([200])
    client = session(transport, decorator, *others, base_url=BASE)
    before = timers()
    task = asyncio.ensure_future(client.get(URL))
    await asyncio.sleep(CLOSED_AT - BEGUN)
    assert not task.done()
    await client.close()
    with pytest.raises(RuntimeError, match="Session is closed") as caught:
        await task

    assert (CLOSED_AT, 0) == (now(), len(transport.requests))
    assert RequestLog.of(caught.value).total_attempts <= 1
    assert before == timers()


@waits
async def test_one_that_begins_after_the_close_is_none(wait, held):
    """A decorator outside has kept the call for a while."""
    decorator = wait()
    await held_by_another(decorator, held)

    @client_decorator
    async def delayed(delegate, ctx, request):
        await asyncio.sleep(1.0)
        return await delegate.execute(ctx, request)

    client = session([], decorator, retrying(0.5), delayed, base_url=BASE)
    task = asyncio.ensure_future(client.get(URL))
    await asyncio.sleep(CLOSED_AT)
    await client.close()
    with pytest.raises(RuntimeError, match="Session is closed"):
        await task

    assert BEGUN + 1.0 == now()


@pytest.mark.parametrize("turns", range(6))
@waits
async def test_one_that_is_cancelled_as_well_is_cancelled(wait, turns, held):
    """By its caller, in the same moment or a little later."""
    decorator = wait()
    await held_by_another(decorator, held)
    client = session([], decorator, base_url=BASE)
    task = asyncio.ensure_future(client.get(URL))
    await asyncio.sleep(CLOSED_AT - BEGUN)
    await client.close()
    for _ in range(turns):
        await asyncio.sleep(0)
    is_over = task.done()
    task.cancel()
    with pytest.raises((RuntimeError, asyncio.CancelledError)) as caught:
        await task

    assert is_over == (caught.type is RuntimeError)
    assert CLOSED_AT == now()


async def test_what_it_gets_in_that_moment_goes_to_the_next_one():
    """A place that comes as the session is closed is not lost."""
    limit = ConcurrencyLimit.fixed(1)
    decorator = ConcurrencyLimitingClient.new_decorator(limit)

    async def short(ctx, request):
        await asyncio.sleep(CLOSED_AT)
        return 200

    one, other = session([short, 200], decorator), session([200], decorator)
    async with other:
        first = asyncio.ensure_future(one.get(URL))
        await asyncio.sleep(0)
        lost = asyncio.ensure_future(one.get(URL))
        await asyncio.sleep(0)
        kept = asyncio.ensure_future(other.get(URL))
        await asyncio.sleep(CLOSED_AT)
        await one.close()
        with suppress(RuntimeError):
            await first
        with suppress(RuntimeError):
            await lost
        assert 200 == (await kept).status
    assert (0, 0) == (limit.in_flight, limit.pending)


LONG = RetryStrategy.failsafe(Backoff.fixed(60.0))


async def at_once():
    """Close nothing."""


async def failure_of(client):
    """Make a call; return its failure and when that was."""
    try:
        await client.get(URL)
    except Exception as error:
        return error, now()
    return None, now()


@pytest.mark.parametrize(
    "answer", [503, refused(), (429, {"Retry-After": "50"}, b"")], ids=repr
)
async def test_close_ends_a_backoff_at_once(answer):
    """The next attempt is refused, as each of a closed session is."""
    client = retrying_session([answer, 200], LONG)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(failure_of(client))
        await asyncio.sleep(1.0)
        await client.close()

    error, ended = task.result()
    assert ("Session is closed", RuntimeError) == (str(error), type(error))
    assert 1.0 == ended
    assert 1.0 == RequestLog.of(error).children[0].delay
    assert 1 == len(asyncio.all_tasks())


async def test_close_ends_a_short_backoff_too():
    """The log has what was waited of it."""
    client = retrying_session([503, 200], RetryStrategy.failsafe(Backoff.fixed(0.5)))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(failure_of(client))
        await asyncio.sleep(0.25)
        await client.close()

    error, ended = task.result()
    assert ("Session is closed", 0.25) == (str(error), ended)
    assert 0.25 == RequestLog.of(error).children[0].delay


async def test_all_calls_of_the_session_end_and_no_other():
    """However many wait."""
    clients = [retrying_session([503] * 3 + [200] * 3, LONG) for _ in range(2)]
    tasks = [
        asyncio.create_task(failure_of(client)) for client in clients for _ in range(3)
    ]
    await asyncio.sleep(1.0)
    await clients[0].close()
    outcomes = await asyncio.gather(*tasks)
    await clients[1].close()

    assert [1.0] * 3 + [60.0] * 3 == [ended for _, ended in outcomes]


async def test_session_that_was_closed_before_the_wait():
    """By a listener, for example."""

    class Closing(RetryListener):
        async def on_retry(self, ctx, cause, delay):
            await client.close()

    client = retrying_session([503, 200], LONG, listeners=[Closing()])
    error, ended = await failure_of(client)

    assert ("Session is closed", 0.0) == (str(error), ended)


async def test_wait_that_is_over_in_the_moment_of_its_beginning():
    """It took no time, and not less, whatever a float leaves of the clock."""

    class Closing(RetryListener):
        def on_retry(self, ctx, cause, delay):
            asyncio.get_running_loop().call_soon(close)

    def close():
        closing.append(asyncio.create_task(client.close()))

    closing, strategy = [], RetryStrategy.failsafe(Backoff.fixed(0.1))
    client = retrying_session([503, 200], strategy, listeners=[Closing()])
    await asyncio.sleep(0.2)
    error, _ = await failure_of(client)
    log = RequestLog.of(error)

    assert 0.1 < 0.2 + 0.1 - 0.2
    assert 0.0 == log.children[0].delay
    assert "then waited 0.000 s (backoff)" in log.render()


async def test_close_that_was_called_just_before_the_wait():
    """It begins a turn of the loop later, as each coroutine of a new task does."""
    client = retrying_session([503, 200], LONG)
    (error, ended), _ = await asyncio.gather(failure_of(client), client.close())

    assert ("Session is closed", 0.0) == (str(error), ended)
    assert 0.0 == RequestLog.of(error).children[0].delay


async def test_smithy_waits_no_longer():
    """For no token, and in vain for none."""
    for strategy in (StandardRetryStrategy(), StandardRetryStrategy(long_polling=True)):
        answer = 503, {"Retry-After": "30"}, b""
        client = retrying_session([answer] * 9, strategy)
        begun = now()
        task = asyncio.create_task(failure_of(client))
        await asyncio.sleep(1.0)
        await client.close()
        _, ended = await task

        assert 1.0 == ended - begun


async def test_cancelled_wait_leaves_nothing():
    """A session may be closed after that, and used before."""
    client = retrying_session([503, 200, 200], LONG)
    log = await log_of_cancelled(client, 2.0)

    assert 2.0 == log.children[0].delay
    assert [] == [name for name in vars(client) if "waiting" in name]


async def test_wait_that_ends_in_the_moment_of_the_close():
    """Is over, either way."""
    client = retrying_session([503, 503], LONG)
    task = asyncio.create_task(failure_of(client))
    await asyncio.sleep(60.0)
    await client.close()
    error, ended = await task

    assert 60.0 == ended
    assert "Session is closed" == str(error)


async def test_call_that_is_cancelled_in_the_moment_of_the_close():
    """It stays cancelled."""
    client = retrying_session([503, 503], LONG)
    task = asyncio.create_task(client.get(URL))
    await asyncio.sleep(1.0)
    connector = client.connector
    # Or else the loop goes on meanwhile.
    connector.close = at_once
    task.cancel()
    await client.close()
    del connector.close
    await connector.close()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert 1.0 == now()


async def test_cancelled_close_wakes_nobody():
    """The session is open yet."""
    client = retrying_session([503, 200], LONG)
    closing = asyncio.Event()

    async def never():
        closing.set()
        await asyncio.sleep(5.0)

    client.connector.close = never
    task = asyncio.create_task(failure_of(client))
    await asyncio.sleep(1.0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await client.close()
    outcome = await task
    del client.connector.close
    await client.close()

    assert closing.is_set()
    assert (None, 60.0) == outcome


async def test_close_of_others_is_called():
    """A library may have put its own in its place, which stays afterwards."""
    client, closed = retrying_session([503, 200], LONG), []

    async def close():
        closed.append(now())
        await aiohttp.ClientSession.close(client)

    client.close = close
    task = asyncio.create_task(failure_of(client))
    await asyncio.sleep(1.0)
    await client.close()
    await task

    assert ([1.0], close) == (closed, client.close)


async def test_close_that_is_put_there_during_a_wait_stays():
    """Nobody is woken by it, and it is not taken away."""
    client = retrying_session([503, 200], LONG)

    async def close():
        pass

    task = asyncio.create_task(failure_of(client))
    await asyncio.sleep(1.0)
    client.close = close

    assert (None, 60.0) == await task
    assert close is client.close
    del client.close
    await client.close()


async def test_nothing_is_left_in_the_session():
    """Whatever became of the wait."""
    client = retrying_session([503, 200, 503, 503], LONG)
    before = set(vars(client))
    assert (None, 60.0) == await failure_of(client)
    assert before == set(vars(client))

    task = asyncio.create_task(failure_of(client))
    await asyncio.sleep(1.0)
    assert before < set(vars(client))
    await client.close()
    await task
    assert before == set(vars(client))


async def test_close_is_fetched_from_what_nobody_keeps():
    """The method keeps its session, as a method does."""
    await retrying_session([], LONG).close()
    client = retrying_session([503, 200], LONG)
    task = asyncio.create_task(failure_of(client))
    await asyncio.sleep(1.0)
    kept = [client]
    del client
    await kept.pop().close()

    assert 1.0 == (await task)[1]


async def test_a_session_that_is_closed_twice_ends_each_wait_once():
    """Also where the second close comes before the first wait has ended."""
    client = retrying_session([503, 200], LONG)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(failure_of(client))
        await asyncio.sleep(1.0)
        await asyncio.gather(client.close(), client.close())

    error, ended = task.result()
    assert ("Session is closed", 1.0) == (str(error), ended)


async def test_tests_of_users_may_put_another_function_in_place_of_sleep(monkeypatch):
    """As they do with other libraries, so that no test waits."""
    slept = []

    async def note(delay):
        slept.append(delay)

    monkeypatch.setattr(asyncio, "sleep", note)
    async with retrying_session([503, 200], LONG) as client:
        response = await client.get(URL)

    assert (200, [60.0], 0.0) == (response.status, slept, now())


async def test_failure_of_such_a_function_is_raised(monkeypatch):
    """A timeout of its own is none of a closed session."""

    async def fail(delay):
        raise TimeoutError("own")

    monkeypatch.setattr(asyncio, "sleep", fail)
    client = retrying_session([503, 200], LONG)
    error, _ = await failure_of(client)

    assert "own" == str(error)
    await client.close()
