from typing import Any

import stamina


@stamina.retry(on=ConnectionError, attempts=3)
async def fetch_three_times(client: Any) -> Any:
    return await client.fetch()


@stamina.retry(on=ConnectionError, timeout=10)
async def fetch_within_ten_seconds(client: Any) -> Any:
    return await client.fetch()


@stamina.retry(
    on=ConnectionError,
    wait_initial=0.5,
    wait_max=4,
    wait_jitter=0.5,
    wait_exp_base=3,
)
async def fetch_patiently(client: Any) -> Any:
    return await client.fetch()


def is_temporary(error: Exception) -> bool:
    return "temporary" in str(error)


@stamina.retry(on=is_temporary, attempts=3)
async def fetch_when_temporary(client: Any) -> Any:
    return await client.fetch()


async def fetch_in_a_loop(client: Any) -> Any:
    async for attempt in stamina.retry_context(on=ConnectionError, attempts=3):
        with attempt:
            return await client.fetch()
    raise AssertionError


async def fetch_once(client: Any) -> Any:
    stamina.set_active(False)
    try:
        return await fetch_three_times(client)
    finally:
        stamina.set_active(True)


async def fetch_twice_at_once(client: Any) -> Any:
    with stamina.set_testing(True, attempts=2):
        return await fetch_three_times(client)


@stamina.retry(on=ConnectionError, attempts=3)
async def fetch_nested(client: Any) -> Any:
    return await fetch_three_times(client)
