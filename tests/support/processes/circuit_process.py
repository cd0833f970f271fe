"""One of the processes that share a circuit, whose server is down: it tries and tries.

Run by test_redis.py. It prints when its requests went out.
"""

import asyncio
import json
import sys
import time

from redis.asyncio import Redis

from aioretry_smithy import CircuitBreaker
from aioretry_smithy.redis import SharedCircuitBreakers


async def main(path, window, interval):
    tried = []

    async def try_on_and_on():
        while True:
            permit = breaker.try_request()
            if permit is not None:
                tried.append(time.time())
                await asyncio.sleep(0.05)
                breaker.on_failure(permit)
            await asyncio.sleep(0.01)

    async with (
        Redis(unix_socket_path=path) as redis,
        SharedCircuitBreakers(redis) as shared,
    ):
        breaker = CircuitBreaker(
            "orders",
            circuit_open_window=float(window),
            trial_request_interval=float(interval),
            listeners=[shared],
        )
        await asyncio.sleep(0.2)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        task = asyncio.create_task(try_on_and_on())
        await asyncio.to_thread(sys.stdin.read)
        task.cancel()
        await asyncio.wait([task])
    print(json.dumps(tried))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
