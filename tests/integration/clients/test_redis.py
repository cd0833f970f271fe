"""redis.asyncio speaks no HTTP; its commands are retried by functions around them."""

import asyncio
import contextlib

import pytest

pytest.importorskip("redis.asyncio")

import redis.asyncio as redis

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    RetryingRpcClient,
    RetryRule,
    rpc,
)

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
