import asyncio

import aiohttp
from service import service


async def main() -> None:
    async with (
        service(503, 200) as url,
        aiohttp.ClientSession(url) as session,
        session.get("/orders") as response,
    ):
        print(response.status)


asyncio.run(main())
