import asyncio

import aiohttp
from aiohttp import web

from aioretry_smithy import RequestLog, SessionBuilder


async def answer(request: web.Request) -> web.Response:
    await asyncio.sleep(0.2)
    return web.Response(text="orders")


async def serve() -> tuple[web.AppRunner, str]:
    application = web.Application()
    application.router.add_get("/orders", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    return runner, f"http://{host}:{port}"


async def main() -> None:
    runner, url = await serve()
    connector = aiohttp.TCPConnector(limit=1)  # too small a pool
    builder = SessionBuilder.standard(url, connector=connector).connection_timings()
    async with builder.build() as session:

        async def get_orders() -> RequestLog:
            async with session.get("/orders") as response:
                await response.read()
            return RequestLog.of(response)

        _, second = await asyncio.gather(get_orders(), get_orders())
        print(second.render())
        connection = second.connection
        assert connection is not None  # None without connection_timings()
        print(f"queued {connection.queued:.3f} s, reused: {connection.reused}")
    await runner.cleanup()


asyncio.run(main())
