import aiohttp

from aioretry_smithy import Backoff, RetryingClient, RetryStrategy, SessionBuilder


async def sign(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    request.headers["Authorization"] = "Bearer token"
    return await handler(request)


def new_session(base_url: str) -> aiohttp.ClientSession:
    strategy = RetryStrategy.failsafe(Backoff.exponential(0.2, 10.0))
    retrying = RetryingClient.new_decorator(strategy, max_total_attempts=3)
    return SessionBuilder(base_url, middlewares=[sign]).decorator(retrying).build()
