from typing import Any

from aioretry_smithy import (
    Backoff,
    RetryConfig,
    RetryingRpcClient,
    RetryRule,
    request_options,
    rpc,
)

DISCONNECTED = RetryRule(
    exceptions=[ConnectionError],
    backoff=Backoff.exponential(0.1, 5).with_jitter(0.2),
)
THREE_TIMES = RetryingRpcClient.new_decorator(DISCONNECTED, max_total_attempts=3)


@rpc(THREE_TIMES)
async def fetch_three_times(client: Any) -> Any:
    return await client.fetch()


@rpc(RetryingRpcClient.new_decorator(DISCONNECTED), response_timeout=10)
async def fetch_within_ten_seconds(client: Any) -> Any:
    return await client.fetch()


@rpc(
    RetryingRpcClient.new_decorator(
        RetryRule(
            exceptions=[ConnectionError],
            backoff=Backoff.exponential(0.5, 4, 3).with_jitter(0.2),
        )
    )
)
async def fetch_patiently(client: Any) -> Any:
    return await client.fetch()


def is_temporary(error: BaseException) -> bool:
    return "temporary" in str(error)


@rpc(
    RetryingRpcClient.new_decorator(
        RetryRule(exceptions=[is_temporary]), max_total_attempts=3
    )
)
async def fetch_when_temporary(client: Any) -> Any:
    return await client.fetch()


@rpc(THREE_TIMES)
async def fetch_in_a_loop(client: Any) -> Any:
    return await client.fetch()  # the block is a function now


async def fetch_once(client: Any) -> Any:
    with request_options(retry=RetryConfig.no_retry()):
        return await fetch_three_times(client)


AT_ONCE = RetryConfig(
    RetryRule(exceptions=[ConnectionError], backoff=Backoff.without_delay()),
    max_total_attempts=2,
)


async def fetch_twice_at_once(client: Any) -> Any:
    with request_options(retry=AT_ONCE):
        return await fetch_three_times(client)


@rpc(THREE_TIMES)
async def fetch_nested(client: Any) -> Any:
    return await fetch_three_times(client)
