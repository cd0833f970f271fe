import logging
from types import SimpleNamespace
from typing import Any

import aiohttp
from aiohttp_retry import ExponentialRetry, RetryClient

logger = logging.getLogger("orders")


def new_client(base_url: str) -> Any:
    options = ExponentialRetry(attempts=3)
    return RetryClient(base_url=base_url, retry_options=options)


def around(session: aiohttp.ClientSession) -> Any:
    options = ExponentialRetry(attempts=3)
    return RetryClient(client_session=session, retry_options=options)


def new_picky_client(base_url: str) -> Any:
    options = ExponentialRetry(
        attempts=3,
        methods={"GET"},
        statuses={429},
        retry_all_server_errors=False,
        exceptions={aiohttp.ClientConnectionError},
    )
    return RetryClient(base_url=base_url, retry_options=options)


async def is_done(response: aiohttp.ClientResponse) -> bool:
    return bool((await response.json())["state"] == "done")


def new_waiting_client(base_url: str) -> Any:
    options = ExponentialRetry(attempts=3, evaluate_response_callback=is_done)
    return RetryClient(base_url=base_url, retry_options=options)


async def warn(session: aiohttp.ClientSession, ctx: SimpleNamespace, _: object) -> None:
    if ctx.trace_request_ctx["current_attempt"] == 3:
        logger.warning("the last attempt")


def new_traced_client(base_url: str) -> Any:
    traces = aiohttp.TraceConfig()
    traces.on_request_start.append(warn)
    options = ExponentialRetry(attempts=3)
    return RetryClient(base_url=base_url, retry_options=options, trace_configs=[traces])


async def fetch_once(client: Any) -> int:
    async with client.get("/", retry_options=ExponentialRetry(attempts=1)) as response:
        return int(response.status)


async def fetch_from_any(*urls: str) -> int:
    options = ExponentialRetry(attempts=3, exceptions={aiohttp.ClientConnectionError})
    client: Any = RetryClient(retry_options=options)
    async with client, client.get([*urls]) as response:
        return int(response.status)
