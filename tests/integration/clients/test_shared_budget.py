"""A retry budget in a real Redis."""

import asyncio
import contextlib
import random
import signal

import pytest
from calls import ended
from fake_redis import FakeRedis

pytest.importorskip("redis.asyncio")

from redis.asyncio import Redis

from aioretry_smithy.redis import SharedRetryBudget


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
