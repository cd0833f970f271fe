import asyncio
import math
from collections.abc import AsyncIterator, Iterator

import aiohttp
from aiohttp import web

from aioretry_smithy import FailFastError, SessionBuilder

ORDERS = web.AppKey("orders", aiohttp.ClientSession)
ORDERS_URL = web.AppKey("orders_url", str)


async def orders_session(app: web.Application) -> AsyncIterator[None]:
    builder = SessionBuilder.standard(
        app[ORDERS_URL], response_timeout=2.0, attempt_timeout=1.0
    )
    async with builder.build() as app[ORDERS]:  # one, for the life of the service
        yield


async def show_order(request: web.Request) -> web.Response:
    try:
        path = f"/orders/{request.match_info['number']}"
        async with request.app[ORDERS].get(path) as response:
            if response.status == 404:
                raise web.HTTPNotFound
            response.raise_for_status()
            return web.json_response(await response.json())
    except FailFastError as error:  # the circuit is open: nothing was sent
        seconds = math.ceil(error.retry_in or 1)
        headers = {"Retry-After": str(seconds)}
        raise web.HTTPServiceUnavailable(headers=headers) from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise web.HTTPBadGateway from error


def new_app(orders_url: str) -> web.Application:
    app = web.Application()
    app[ORDERS_URL] = orders_url
    app.cleanup_ctx.append(orders_session)
    app.router.add_get("/orders/{number}", show_order)
    return app


# From here on: a service of orders that fails at first, and somebody who asks.


def new_orders() -> web.Application:
    answers: Iterator[int] = iter([503, 200, 404, 500, 500, 500, 500, 500, 500])

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"order": "tea"}, status=next(answers))

    app = web.Application()
    app.router.add_get("/orders/{number}", answer)
    return app


async def serve(app: web.Application) -> tuple[web.AppRunner, str]:
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    return runner, f"http://{host}:{port}"


async def main() -> None:
    orders, orders_url = await serve(new_orders())
    service, url = await serve(new_app(orders_url))
    async with aiohttp.ClientSession(url) as caller:
        for number in (1, 2, 3):
            async with caller.get(f"/orders/{number}") as response:
                print(response.status, (await response.text()).strip())
    await service.cleanup()  # leaves orders_session()
    await orders.cleanup()


asyncio.run(main())
