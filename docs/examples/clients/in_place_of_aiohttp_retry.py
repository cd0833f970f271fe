import json
import logging

import aiohttp

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    EndpointGroup,
    HttpClient,
    HttpRequest,
    RetryConfig,
    RetryingClient,
    RetryRule,
    RetryRuleWithContent,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
    decorate,
    request_options,
)

logger = logging.getLogger("orders")

BACKOFF = Backoff.exponential(0.2, 30.0, 2.0)
SAFELY = RetryingClient.new_decorator(RetryStrategy.failsafe(BACKOFF), 3)


def new_client(base_url: str) -> aiohttp.ClientSession:
    return SessionBuilder(base_url).decorator(SAFELY).build()


def around(session: aiohttp.ClientSession) -> aiohttp.ClientSession:
    return decorate(session, SAFELY)


def new_picky_client(base_url: str) -> aiohttp.ClientSession:
    rule = RetryRule(
        methods=["GET"],
        statuses=[429],
        exceptions=[aiohttp.ClientConnectionError],
        backoff=BACKOFF,
    )
    retrying = RetryingClient.new_decorator(rule, max_total_attempts=3)
    return SessionBuilder(base_url).decorator(retrying).build()


def is_pending(content: bytes | None) -> bool:
    return content is not None and json.loads(content)["state"] != "done"


def new_waiting_client(base_url: str) -> aiohttp.ClientSession:
    rule = RetryRuleWithContent(
        status_classes=[5], on_content=is_pending, backoff=BACKOFF
    )
    retrying = RetryingClient.new_decorator(rule, max_total_attempts=3)
    return SessionBuilder(base_url).decorator(retrying).build()


@client_decorator
async def warn(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    if ctx.attempt == 3:
        logger.warning("the last attempt")
    return await delegate.execute(ctx, request)


def new_traced_client(base_url: str) -> aiohttp.ClientSession:
    return SessionBuilder(base_url).decorator(warn).decorator(SAFELY).build()


async def fetch_once(client: aiohttp.ClientSession) -> int:
    with request_options(retry=RetryConfig.no_retry()):
        async with client.get("/") as response:
            return response.status


async def fetch_from_any(*urls: str) -> int:
    builder = SessionBuilder(EndpointGroup.of(*urls)).decorator(SAFELY)
    async with builder.build() as session, session.get("/") as response:
        return response.status
