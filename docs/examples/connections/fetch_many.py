import asyncio
import itertools

import aiohttp
from aiohttp import web

from aioretry_smithy import RateLimit, SessionBuilder

WORKERS = 10


async def fetch_all(
    session: aiohttp.ClientSession, urls: list[str], found: dict[str, object]
) -> None:
    """Fetch each URL; *found* has a body or an exception as soon as it is known."""
    left = iter(urls)

    async def work() -> None:
        for url in left:  # which the workers share
            try:
                async with session.get(url, raise_for_status=True) as response:
                    found[url] = await response.text()
            except (aiohttp.ClientError, TimeoutError) as error:
                found[url] = error
            if len(found) % 20 == 0:
                print(f"{len(found)} of {len(urls)}")

    async with asyncio.TaskGroup() as workers:
        for _ in range(WORKERS):
            workers.create_task(work())


def new_builder(url: str) -> SessionBuilder:
    return SessionBuilder.standard(
        url,
        concurrency=5,  # of each host
        rate=RateLimit(200),  # a second, in all
        response_timeout=20.0,  # of one call, with its waits for a turn
    )


async def crawl(url: str, urls: list[str]) -> None:
    found: dict[str, object] = {}
    try:
        async with new_builder(url).build() as session:
            await fetch_all(session, urls, found)
    finally:  # on Ctrl-C too: what is there is not lost
        failed = sum(isinstance(what, Exception) for what in found.values())
        good, left = len(found) - failed, len(urls) - len(found)
        print(f"{good} fetched, {failed} failed, {left} left")


# From here on: a server that is busy at every fifth request.


def new_server() -> web.Application:
    requests = itertools.count()

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/pages/13":
            return web.Response(status=404)
        return web.Response(status=503 if next(requests) % 5 == 0 else 200)

    app = web.Application()
    app.router.add_get("/pages/{number}", answer)
    return app


async def main() -> None:
    runner = web.AppRunner(new_server())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    await crawl(f"http://{host}:{port}", [f"/pages/{n}" for n in range(60)])
    await runner.cleanup()


asyncio.run(main())
