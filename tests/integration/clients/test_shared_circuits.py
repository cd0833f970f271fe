"""Eight processes share open circuits by a real Redis."""

import asyncio
import contextlib

import pytest
from chains import URL, session
from circuits import waiting_at
from until import until

pytest.importorskip("redis.asyncio")

from redis.asyncio import Redis

from aioretry_smithy import CircuitBreaker, CircuitState
from aioretry_smithy.redis import SharedCircuitBreakers

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
