"""Statuses that a middleware, a session or a proxy's refusal raises, on loopback."""

import aiohttp
import pytest
from chains import SAFELY, connected, log_of, retrying
from fault_server import FaultServer, answer

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    RetryingRpcClient,
    RetryStopReason,
    rpc,
)


@pytest.fixture
async def server():
    async with FaultServer() as server:
        yield server


async def raise_for_status(request, handler):
    """Raise as middlewares of many clients do."""
    response = await handler(request)
    response.raise_for_status()
    return response


async def translate(request, handler):
    """Raise an exception of one's own, which says where it comes from."""
    try:
        return await raise_for_status(request, handler)
    except aiohttp.ClientResponseError as error:
        raise ApiError(
            error.request_info,
            error.history,
            status=error.status,
            headers=error.headers,
        ) from ValueError("the body has no code")


class ApiError(aiohttp.ClientResponseError):
    """What a library raises for each status."""


@pytest.mark.parametrize("middleware", [raise_for_status, translate])
@pytest.mark.parametrize(
    ("status", "sent", "counted"), [(404, 1, (1, 0)), (503, 3, (0, 3))]
)
async def test_middleware_that_raises(server, middleware, status, sent, counted):
    """Strategy and breaker judge by the status."""
    server.then = answer(status)
    breaker = CircuitBreaker("shop")
    client = connected(
        server.url,
        CircuitBreakerClient.new_decorator(breaker),
        retrying(SAFELY, max_total_attempts=3),
        middlewares=[middleware],
    )
    log = await log_of(client, "/orders")

    assert (sent, sent) == (log.total_attempts, len(server.requests))
    assert counted == (breaker.event_count.success, breaker.event_count.failure)


@pytest.mark.parametrize(("status", "sent"), [(404, 1), (503, 3)])
async def test_function_around_a_session_that_raises(server, status, sent):
    """A plain session, inside a function that is retried."""
    server.then = answer(status)
    retry = RetryingRpcClient.new_decorator(SAFELY, max_total_attempts=3)

    @rpc(retry, idempotent=True)
    async def fetch():
        async with aiohttp.ClientSession(raise_for_status=True) as client:
            await client.get(server.url)

    with pytest.raises(aiohttp.ClientResponseError):
        await fetch()

    assert sent == len(server.requests)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("status", "sent"), [(407, 1), (403, 1), (404, 1), (302, 1), (503, 3), (429, 3)]
)
async def test_tunnel_that_a_proxy_refuses(server, method, status, sent):
    """Wrong credentials stay wrong; one that is busy has passed nothing on."""
    server.then = answer(status)
    client = connected(None, retrying(SAFELY, max_total_attempts=3))
    log = await log_of(
        client, "https://shop.test/orders", method=method, proxy=server.url
    )

    assert aiohttp.ClientHttpProxyError is type(log.response_cause)
    assert (sent, sent) == (log.total_attempts, len(server.requests))
    assert False is log.sent
    if sent == 1:
        assert RetryStopReason.NO_RETRY == log.stop_reason
