import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from aioretry_smithy import Backoff, RetryingRpcClient, RetryRule, rpc

RULE = RetryRule(
    exceptions=[redis.ConnectionError, redis.WatchError],
    on_timeout=True,
    backoff=Backoff.exponential(0.05, 2.0).with_full_jitter(),
)


def connect(path: str) -> redis.Redis:
    # The library makes three retries of its own, which would multiply ours.
    return redis.Redis(unix_socket_path=path, retry=Retry(NoBackoff(), 0))


@rpc(
    RetryingRpcClient.new_decorator(RULE, attempt_timeout=1.0),
    response_timeout=10.0,
)
async def take_one(client: redis.Redis, order: str) -> None:
    async with client.pipeline() as pipe:
        await pipe.watch("stock", "orders")
        # An attempt whose answer was lost may have done it.
        if not await pipe.sismember("orders", order):
            pipe.multi()
            pipe.decr("stock")
            pipe.sadd("orders", order)
            await pipe.execute()
