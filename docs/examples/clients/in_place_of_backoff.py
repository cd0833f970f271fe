import json
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, Protocol, TypeVar

import aiohttp

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    RetryConfig,
    RetryingClient,
    RetryingRpcClient,
    RetryRule,
    RetryRuleWithContent,
    RetryStrategy,
    RpcClient,
    RpcRequest,
    SessionBuilder,
    client_decorator,
    request_options,
    rpc,
)

P = ParamSpec("P")
T = TypeVar("T")

BACKOFF = Backoff.exponential(1.0, 30.0).with_full_jitter()
SAFELY = RetryConfig(RetryStrategy.failsafe(BACKOFF), max_total_attempts=3)


def new_session(base_url: str) -> aiohttp.ClientSession:
    builder = SessionBuilder(base_url, raise_for_status=True)
    return builder.decorator(RetryingClient.new_decorator(SAFELY)).build()


async def fetch_order(session: aiohttp.ClientSession) -> Any:
    async with session.get("/orders/7") as response:
        return await response.json()


async def place_order(session: aiohttp.ClientSession, order: Any) -> None:
    async with session.post("/orders", data=order):
        pass


async def fetch_in_time(session: aiohttp.ClientSession) -> Any:
    timeout = aiohttp.ClientTimeout(total=10)
    async with session.get("/orders/7", timeout=timeout) as response:
        return await response.json()


def is_pending(content: bytes | None) -> bool:
    return content is not None and json.loads(content)["state"] == "pending"


UNTIL_DONE = RetryConfig(
    RetryRuleWithContent(on_content=is_pending, backoff=Backoff.fixed(2.0)),
    max_total_attempts=3,
)


async def fetch_when_done(session: aiohttp.ClientSession) -> Any:
    with request_options(retry=UNTIL_DONE):
        async with session.get("/orders/7") as response:
            return await response.json()


class NotLoggedInError(Exception):
    pass


class Client(Protocol):
    async def log_in(self) -> None: ...

    async def fetch(self) -> Any: ...


@client_decorator
async def log_in_again(
    delegate: RpcClient, ctx: ClientRequestContext, request: RpcRequest
) -> Any:
    if ctx.attempt != 1:
        (client,) = request.args
        await client.log_in()
    return await delegate.execute(ctx, request)


def retried(
    function: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    rule = RetryRule(exceptions=[NotLoggedInError], backoff=BACKOFF)
    retrying = RetryingRpcClient.new_decorator(rule, max_total_attempts=2)
    return rpc(log_in_again, retrying)(function)


@retried
async def fetch_as_user(client: Client) -> Any:
    return await client.fetch()
