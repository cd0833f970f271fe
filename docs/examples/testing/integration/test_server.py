from aiohttp import web
from pytest_aiohttp import AiohttpClient

from aioretry_smithy import Backoff, RetryingClient, RetryStrategy, decorate, undecorate


async def test_service_recovers(aiohttp_client: AiohttpClient) -> None:
    answers = iter([503, 200])

    async def orders(request: web.Request) -> web.Response:
        return web.json_response([1, 2], status=next(answers))

    app = web.Application()
    app.router.add_get("/orders", orders)
    client = await aiohttp_client(app)
    strategy = RetryStrategy.failsafe(Backoff.without_delay())
    decorate(client.session, RetryingClient.new_decorator(strategy))

    async with client.get("/orders") as response:
        assert response.status == 200

    undecorate(client.session)
