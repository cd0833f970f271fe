from typing import Any

from aioretry_smithy import Backoff, RetryingRpcClient, RetryRule, rpc

RULE = RetryRule(
    exceptions=[ConnectionError],  # and what your driver raises at a conflict
    on_timeout=True,
    backoff=Backoff.exponential(0.05, 2.0).with_full_jitter(),
)


@rpc(
    RetryingRpcClient.new_decorator(RULE, attempt_timeout=1.0),
    response_timeout=10.0,
)
async def transfer(pool: Any, amount: int) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(f"INSERT debit {-amount}")
        await connection.execute(f"INSERT credit {amount}")
