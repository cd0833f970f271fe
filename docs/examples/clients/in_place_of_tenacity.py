import logging
from typing import Any

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    LoggingRpcClient,
    RetryBudget,
    RetryingRpcClient,
    RetryRule,
    RetryRuleWithContent,
    RpcClient,
    RpcRequest,
    capture_logs,
    client_decorator,
    rpc,
)

logger = logging.getLogger("orders")

AT_ONCE = Backoff.without_delay()
ANY_ERROR = RetryRule(exceptions=[Exception], backoff=AT_ONCE)
THREE_TIMES = RetryingRpcClient.new_decorator(ANY_ERROR, max_total_attempts=3)


@rpc(THREE_TIMES)
async def fetch_three_times(client: Any) -> Any:
    return await client.fetch()


@rpc(THREE_TIMES)
async def fetch_or_reraise(client: Any) -> Any:
    return await client.fetch()


@rpc(
    RetryingRpcClient.new_decorator(
        RetryRule(exceptions=[Exception], backoff=Backoff.fixed(1))
    ),
    response_timeout=10,
)
async def fetch_within_ten_seconds(client: Any) -> Any:
    return await client.fetch()


@rpc(
    RetryingRpcClient.new_decorator(
        RetryRule(
            exceptions=[Exception],
            backoff=Backoff.exponential(1, 10).with_jitter(0.2),
        )
    )
)
async def fetch_patiently(client: Any) -> Any:
    return await client.fetch()


@rpc(
    RetryingRpcClient.new_decorator(
        RetryRule(exceptions=[ConnectionError], backoff=AT_ONCE)
    )
)
async def fetch_connected(client: Any) -> Any:
    return await client.fetch()


def is_pending(answer: object) -> bool:
    return answer == "pending"


@rpc(
    RetryingRpcClient.new_decorator(
        RetryRuleWithContent(on_content=is_pending, backoff=AT_ONCE),
        max_total_attempts=3,
    )
)
async def fetch_when_done(client: Any) -> Any:
    return await client.fetch()


@rpc(
    LoggingRpcClient.new_decorator(
        logger=logger,
        successful_response_log_level=logging.DEBUG,
        failure_response_log_level=logging.WARNING,
    ),
    THREE_TIMES,
)
async def fetch_loudly(client: Any) -> Any:
    return await client.fetch()


@rpc(THREE_TIMES)
async def fetch_in_a_loop(client: Any) -> Any:
    return await client.fetch()  # the block is a function now


@client_decorator
async def or_nothing(
    delegate: RpcClient, ctx: ClientRequestContext, request: RpcRequest
) -> Any:
    try:
        return await delegate.execute(ctx, request)
    except Exception:
        return "nothing"


@rpc(THREE_TIMES, or_nothing)
async def fetch_or_nothing(client: Any) -> Any:
    return await client.fetch()


async def count_attempts(client: Any) -> Any:
    with capture_logs() as logs:
        await fetch_three_times(client)
    return logs[0].total_attempts


@rpc(THREE_TIMES)
async def fetch_nested(client: Any) -> Any:
    return await fetch_three_times(client)


@rpc(
    RetryingRpcClient.new_decorator(
        ANY_ERROR, max_total_attempts=3, limiter=RetryBudget()
    )
)
async def fetch_within_budget(client: Any) -> Any:
    return await client.fetch()
