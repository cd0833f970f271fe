"""Measure shared limits: python tests/tools/benchmarks/shared_limits.py [--only NAME].

Needs the extras limits and redis, and a redis-server in the path, which it starts.
Times are of the processor, of this process and of the server: others do not change them
much. No request goes out.
"""

import argparse
import asyncio
import contextlib
import tempfile
import time
from pathlib import Path

from redis.asyncio import Redis
from stub import ADDRESS, stubbed

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    RateLimit,
    RateLimitingClient,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.limits import SharedRateLimit
from aioretry_smithy.redis import SharedCircuitBreakers, SharedRetryBudget
from aioretry_smithy.testing import ScriptedTransport

RATE = 10**9
ROUNDS = 5
COSTS = 1, 5_000, 50_000


@contextlib.asynccontextmanager
async def redis_server():
    """Start a server; yield the path that it listens on."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "socket")
        process = await asyncio.create_subprocess_exec(
            *("redis-server", "--port", "0", "--unixsocket", path, "--save", ""),
            stdout=asyncio.subprocess.PIPE,
        )
        while b"eady to accept connections" not in await process.stdout.readline():
            pass
        yield path
        process.terminate()
        await process.communicate()


async def calls_through(calls, *decorators):
    """Make calls that are answered on the spot, through a chain."""
    builder = SessionBuilder()
    for decorator in decorators:
        builder.decorator(decorator)
    async with builder.build() as session:
        with stubbed():
            for _ in range(calls):
                await session.get(ADDRESS)


async def retries_of(calls, budget):
    transport = ScriptedTransport([200])
    async with SessionBuilder().decorator(transport).build() as session:
        await session.get(ADDRESS)
    (ctx,) = transport.contexts
    for _ in range(calls):
        answer = budget.acquire(ctx, None)
        if not isinstance(answer, bool):
            answer = await answer
        assert answer
        budget.release(ctx)


async def seconds_of_server(redis):
    usage = await redis.info("cpu")
    return usage["used_cpu_sys"] + usage["used_cpu_user"]


async def measure(redis, calls, run):
    """Return microseconds of this process, of the server, and that pass, per call."""
    best = None
    for _ in range(ROUNDS):
        server, ours, passed = (
            await seconds_of_server(redis),
            time.process_time(),
            time.perf_counter(),
        )
        await run(calls)
        ours, passed = time.process_time() - ours, time.perf_counter() - passed
        server = await seconds_of_server(redis) - server
        times = [1e6 * each / calls for each in (ours, server, passed)]
        best = times if best is None else [*map(min, best, times)]
    return best


def variants(path, redis, shared):
    """Return what is measured, by its name."""
    limiting = RateLimitingClient.new_decorator
    breaking = CircuitBreakerClient.new_decorator
    never = RetryStrategy.failsafe()

    def chain(*decorators):
        return lambda calls: calls_through(calls, *decorators)

    def retrying(budget):
        return chain(RetryingClient.new_decorator(never, limiter=budget))

    def shared_rate(uri, **options):
        return chain(
            limiting(SharedRateLimit(uri, f"{RATE}/second", key="a", **options))
        )

    def shared_cost(cost):
        return shared_rate(
            f"async+redis+unix://{path}",
            implementation="redispy",
            cost=lambda ctx, request: cost,
        )

    settings = {"capacity": RATE, "brake_after": None}
    local, common = (
        RetryBudget("a", **settings),
        SharedRetryBudget(redis, "a", **settings),
    )
    return {
        "a call without limits": chain(),
        "RateLimit": chain(limiting(RateLimit(RATE))),
        "SharedRateLimit, memory": shared_rate("async+memory://"),
        "SharedRateLimit, Redis": shared_rate(
            f"async+redis+unix://{path}", implementation="redispy"
        ),
        **{f"SharedRateLimit, cost {cost:,}": shared_cost(cost) for cost in COSTS},
        "a call with RetryBudget": retrying(local),
        "a call with SharedRetryBudget": retrying(common),
        "a retry with RetryBudget": lambda calls: retries_of(calls, local),
        "a retry with SharedRetryBudget": lambda calls: retries_of(calls, common),
        "CircuitBreaker": chain(breaking(CircuitBreaker("a"))),
        "with SharedCircuitBreakers": chain(
            breaking(CircuitBreaker("b", listeners=[shared]))
        ),
    }


async def main(calls, only):
    async with (
        redis_server() as path,
        Redis(unix_socket_path=path) as redis,
        SharedCircuitBreakers(redis) as shared,
    ):
        print(f"{'microseconds':32}{'process':>9}{'server':>9}{'passed':>9}")
        for name, run in variants(path, redis, shared).items():
            if only not in name:
                continue
            times = await measure(redis, calls, run)
            print(f"{name:32}" + "".join(f"{each:9.1f}" for each in times))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--only", default="", help="a part of the names to measure")
    asyncio.run(main(**vars(parser.parse_args())))
