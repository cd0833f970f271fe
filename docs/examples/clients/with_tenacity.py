import logging
from typing import Any

import tenacity

logger = logging.getLogger("orders")


@tenacity.retry(stop=tenacity.stop_after_attempt(3))
async def fetch_three_times(client: Any) -> Any:
    return await client.fetch()


@tenacity.retry(stop=tenacity.stop_after_attempt(3), reraise=True)
async def fetch_or_reraise(client: Any) -> Any:
    return await client.fetch()


@tenacity.retry(
    stop=tenacity.stop_after_delay(10),
    wait=tenacity.wait_fixed(1),
)
async def fetch_within_ten_seconds(client: Any) -> Any:
    return await client.fetch()


@tenacity.retry(wait=tenacity.wait_exponential_jitter(max=10))
async def fetch_patiently(client: Any) -> Any:
    return await client.fetch()


@tenacity.retry(retry=tenacity.retry_if_exception_type(ConnectionError))
async def fetch_connected(client: Any) -> Any:
    return await client.fetch()


def is_pending(answer: object) -> bool:
    return answer == "pending"


@tenacity.retry(
    retry=tenacity.retry_if_result(is_pending),
    stop=tenacity.stop_after_attempt(3),
)
async def fetch_when_done(client: Any) -> Any:
    return await client.fetch()


@tenacity.retry(
    stop=tenacity.stop_after_attempt(3),
    before_sleep=tenacity.before_sleep_log(logger, logging.WARNING),
)
async def fetch_loudly(client: Any) -> Any:
    return await client.fetch()


async def fetch_in_a_loop(client: Any) -> Any:
    async for attempt in tenacity.AsyncRetrying(stop=tenacity.stop_after_attempt(3)):
        with attempt:
            return await client.fetch()
    raise AssertionError


@tenacity.retry(
    stop=tenacity.stop_after_attempt(3),
    retry_error_callback=lambda state: "nothing",
)
async def fetch_or_nothing(client: Any) -> Any:
    return await client.fetch()


async def count_attempts(client: Any) -> Any:
    await fetch_three_times(client)
    retried: Any = fetch_three_times  # tenacity's types lack .statistics
    return retried.statistics["attempt_number"]


@tenacity.retry(stop=tenacity.stop_after_attempt(3))
async def fetch_nested(client: Any) -> Any:
    return await fetch_three_times(client)
