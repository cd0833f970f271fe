"""Calls of redis-py as functions, and circuits and budgets that it shares."""

import pytest

pytest.importorskip("redis.asyncio")

import asyncio
import contextlib
import random
import signal

import redis.asyncio as redis
from calls import ended
from chains import URL, session
from circuits import waiting_at
from fake_redis import FakeRedis
from redis.asyncio import Redis
from until import until

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreaker,
    CircuitState,
    RetryingRpcClient,
    RetryRule,
    rpc,
)
from aioretry_smithy.redis import SharedCircuitBreakers, SharedRetryBudget

SOON = Backoff.fixed(0.1)


@pytest.fixture
async def clients(serve, example):
    """Two clients of a server that runs."""
    await serve()
    connect = example("with_redis").connect
    async with connect(serve.path) as one, connect(serve.path) as other:
        yield one, other


async def blocked(client, count):
    """Wait until the server lets so many commands wait."""
    is_blocked = False
    while not is_blocked:
        is_blocked = (await client.info("clients"))["blocked_clients"] == count


def retried(**settings):
    rule = RetryRule(exceptions=[redis.ConnectionError], on_timeout=True, backoff=SOON)
    return rpc(RetryingRpcClient.new_decorator(rule, **settings))


async def test_transaction_that_met_another_is_made_again(clients, example, logs):
    """Both have read when the first one writes; the second reads again."""
    one, other = clients
    await one.set("stock", 10)
    await other.client_pause(30_000, all=False)
    take_one = example("with_redis").take_one

    async with asyncio.TaskGroup() as group:
        for order in "ab":
            group.create_task(take_one(one, order))
        await blocked(other, 2)
        await other.client_unpause()

    assert b"8" == await one.get("stock")
    assert {b"a", b"b"} == await one.smembers("orders")
    assert [1, 2] == sorted(log.total_attempts for log in logs)
    assert [redis.WatchError] == [
        type(child.response_cause)
        for log in logs
        for child in log.children
        if child.response_cause is not None
    ]


async def test_order_that_was_taken_is_not_taken_again(clients, example):
    """An attempt finds what one before it did, whose answer was lost."""
    one, _ = clients
    await one.set("stock", 10)
    for _ in range(2):
        await example("with_redis").take_one(one, "a")

    assert b"9" == await one.get("stock")


async def test_command_is_sent_again_after_its_connection_was_killed(clients, logs):
    """On a new connection."""
    one, other = clients

    @retried()
    async def next_order():
        return await one.blpop(["orders"])

    async with asyncio.TaskGroup() as group:
        order = group.create_task(next_order())
        await blocked(other, 1)
        await other.client_kill_filter(_type="normal", skipme=True)
        await other.rpush("orders", "a")

    assert (b"orders", b"a") == order.result()
    assert [2] == [log.total_attempts for log in logs]


async def test_command_that_was_cut_leaves_no_answer_behind(clients, logs):
    """The next command does not get the answer to the one that was cut."""
    one, _ = clients
    attempts = []

    @retried(attempt_timeout=0.3)
    async def next_order():
        attempts.append(None)
        if len(attempts) == 2:
            await one.rpush("orders", "a")
        return await one.blpop(["orders"])

    order = await next_order()

    assert (b"orders", b"a") == order
    assert b"PONG" == await one.execute_command("ECHO", "PONG")
    assert AttemptTimeoutError is type(logs[0].children[0].response_cause)


async def test_call_waits_for_a_server_that_starts(serve, example, logs):
    """Connections are refused until it listens."""
    client = example("with_redis").connect(serve.path)

    @retried(max_total_attempts=1000)
    async def ping():
        return await client.ping()

    async with contextlib.aclosing(client), asyncio.TaskGroup() as group:
        answer = group.create_task(ping())
        await asyncio.sleep(0.2)
        await serve()

    assert answer.result() is True
    assert logs[0].total_attempts > 1


PROCESSES = 8


async def subscribed(client, count):
    """Wait until so many have subscribed to the channel."""
    found = 0
    async with asyncio.timeout(5.0):
        while found < count:
            channels = await client.pubsub_numsub("aioretry_smithy:circuit-breakers")
            found = channels[0][1]


@pytest.mark.long
async def test_a_server_that_is_down_sees_the_trials_of_one(serve, fleet):
    """With a window of a second they are five in five seconds, not forty."""
    await serve()
    await fleet.start("circuit_process.py", PROCESSES, serve.path, "1.0", "0.5")
    await asyncio.sleep(8.0)
    tried = sorted(at for each in await fleet.stop() for at in each)
    # By then all have opened.
    begin = tried[0] + 2.5

    assert 3 <= len([at for at in tried if begin <= at < begin + 5.0]) <= 10


@pytest.mark.long
async def test_news_arrive_again_when_the_server_is_back(serve):
    """Listeners subscribe again, and messages arrive again."""
    await serve()
    async with contextlib.AsyncExitStack() as stack:
        breakers = []
        for _ in range(2):
            client = Redis(unix_socket_path=serve.path)
            await stack.enter_async_context(contextlib.aclosing(client))
            shared = SharedCircuitBreakers(client)
            await stack.enter_async_context(shared)
            breakers.append(CircuitBreaker("orders", listeners=[shared]))
        one, other = breakers
        await asyncio.sleep(0.5)
        other.on_failure(other.try_request())
        await serve.kill()
        one.enter_state(CircuitState.OPEN)
        await asyncio.sleep(0.5)
        assert CircuitState.CLOSED is other.state

        await serve()
        one.enter_state(CircuitState.CLOSED)
        async with asyncio.timeout(30.0):
            while other.state is not CircuitState.OPEN:
                await asyncio.sleep(1.5)
                one.enter_state(CircuitState.OPEN)
                await asyncio.sleep(0.1)
                one.enter_state(CircuitState.HALF_OPEN)


@pytest.mark.slow
async def test_one_trial_serves_those_who_wait_in_all_processes(serve):
    """Redis tells them that the server is back."""
    await serve()
    tried = []

    async def answer(ctx, request):
        tried.append(request)
        return 200

    async with contextlib.AsyncExitStack() as stack:
        breakers, sessions = [], []
        for _ in range(2):
            client = Redis(unix_socket_path=serve.path)
            await stack.enter_async_context(contextlib.aclosing(client))
            shared = SharedCircuitBreakers(client)
            await stack.enter_async_context(shared)
            breaker = CircuitBreaker(
                "orders",
                circuit_open_window=1.0,
                trial_request_interval=1.0,
                listeners=[shared],
            )
            breakers.append(breaker)
            chain = session([answer] * 20, waiting_at(breaker, 10.0))
            sessions.append(await stack.enter_async_context(chain))
        one, other = breakers
        await subscribed(client, 2)
        other.on_failure(other.try_request())
        one.enter_state(CircuitState.OPEN)
        await until(lambda: CircuitState.OPEN is other.state)
        async with asyncio.timeout(10.0):
            done = await asyncio.gather(
                *(each.get(URL) for each in sessions for _ in range(10))
            )

        assert [200] * 20 == [response.status for response in done]
        assert [CircuitState.CLOSED] * 2 == [each.state for each in breakers]
    assert 20 == len(tried)


@pytest.fixture
async def client(serve):
    """A client of a server that runs."""
    await serve()
    async with contextlib.aclosing(Redis(unix_socket_path=serve.path)) as client:
        yield client


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"brake_after": None, "deposit": 1 / 3},
        {"brake_after": 2, "unserved_cost": 0.1},
        {"brake_after": None, "deposit": 0.02, "unserved_cost": 0.3},
        {"capacity": 1, "deposit": 0.0, "unserved_cost": 0.0},
    ],
)
async def test_redis_does_what_the_tests_take_it_to_do(client, settings, monkeypatch):
    """The script agrees with the same in Python, on a random history."""
    # A report beside a question may come before or after it; here are only questions.
    monkeypatch.setattr("aioretry_smithy.redis._budget._REPORT_AFTER", 3600.0)
    budgets = [
        SharedRetryBudget(redis, "orders", **settings)
        for redis in (client, FakeRedis())
    ]
    dice = random.Random(7)
    answers = []
    for _ in range(300):
        ctx, happens = ended(dice.choice([500, 503])), dice.random()
        for budget in budgets:
            if happens < 0.4:
                budget.on_success(ctx)
            elif happens < 0.7:
                budget.on_failure(ctx, None)
            else:
                is_paid = await budget.acquire(ctx, None)
                answers.append((is_paid, budget.tokens, budget.failures_in_a_row))
                if is_paid and happens < 0.8:
                    budget.release(ctx)

    assert answers[::2] == answers[1::2]
    assert {True, False} == {is_paid for is_paid, _, _ in answers}


async def test_no_token_is_spent_twice(client):
    """By processes that ask at the same time."""
    budgets = [SharedRetryBudget(client, "orders", brake_after=None) for _ in range(4)]
    answers = await asyncio.gather(
        *(budget.acquire(ended(503), None) for budget in budgets for _ in range(10))
    )

    assert 10 == sum(answers)


async def test_a_budget_is_forgotten_after_an_hour(client):
    """Which nobody has to clean up."""
    budget = SharedRetryBudget(client, "orders")
    await budget.acquire(ended(503), None)

    assert 3600 == await client.ttl("aioretry_smithy:retry-budget:orders")


@pytest.mark.long
async def test_a_server_that_hangs_holds_up_one_retry_for_a_second(client, serve):
    """Those after it do not wait; when the server goes on, they are paid for."""
    budget = SharedRetryBudget(client, "orders", brake_after=None)
    await budget.acquire(ended(503), None)
    clock = asyncio.get_running_loop().time
    serve.processes[-1].send_signal(signal.SIGSTOP)
    try:
        started = clock()
        assert await budget.acquire(ended(503), None)
        assert 0.9 < clock() - started < 5.0
        started = clock()
        assert await budget.acquire(ended(503), None)
        assert clock() - started < 0.9
    finally:
        serve.processes[-1].send_signal(signal.SIGCONT)
    await asyncio.sleep(4.0)

    # The question that was cut may have been answered in the end.
    left = await client.hget("aioretry_smithy:retry-budget:orders", "tokens")
    assert left in {b"6", b"7"}


async def test_what_succeeds_in_one_process_is_known_in_another(client, serve):
    """Though each has a client of its own; answers may be text as well."""
    settings = {"unix_socket_path": serve.path, "decode_responses": True}
    async with contextlib.aclosing(Redis(**settings)) as other_client:
        one = SharedRetryBudget(client, "orders", capacity=1)
        other = SharedRetryBudget(other_client, "orders", capacity=1)

        assert await one.acquire(ended(503), None)
        assert not await other.acquire(ended(503), None)
        for _ in range(10):
            other.on_success(ended(200))
        await other._report()
        assert await one.acquire(ended(503), None)
