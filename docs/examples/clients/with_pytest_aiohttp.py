from aiohttp import web
from aiohttp.test_utils import TestClient
from pytest_aiohttp import AiohttpClient

from aioretry_smithy import Backoff, RetryingClient, RetryStrategy, decorate

RETRYING = RetryingClient.new_decorator(RetryStrategy.failsafe(Backoff.without_delay()))


async def retrying_client(
    aiohttp_client: AiohttpClient, application: web.Application
) -> TestClient[web.Request, web.Application]:
    client = await aiohttp_client(application)
    decorate(client.session, RETRYING)
    return client
