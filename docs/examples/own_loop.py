import asyncio
import random

import aiohttp

from aioretry_smithy import RequestLog, SessionBuilder, decorate
from aioretry_smithy.testing import ScriptedTransport


async def fetch_by_loop(session: aiohttp.ClientSession, url: str) -> str:
    for attempt in range(5):
        try:
            async with session.get(url) as response:
                if response.status < 500:
                    return await response.text()
        except (aiohttp.ClientError, TimeoutError):
            if attempt == 4:
                raise
        await asyncio.sleep(2**attempt + random.random())
    raise RuntimeError(url)


async def fetch(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(url, raise_for_status=True) as response:
        print(RequestLog.of(response).render())
        return await response.text()


async def main() -> None:
    url = "https://api.example.com/orders"
    answers = [503, aiohttp.ServerDisconnectedError(), 200]
    async with aiohttp.ClientSession() as plain:
        decorate(plain, ScriptedTransport(answers))  # without this line: the network
        await fetch_by_loop(plain, url)

    transport = ScriptedTransport(answers)  # likewise
    async with SessionBuilder.standard(inside=[transport]).build() as session:
        await fetch(session, url)


asyncio.run(main())
