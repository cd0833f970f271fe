from typing import Any

import aiohttp
import stamina


def new_session(base_url: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(base_url, raise_for_status=True)


@stamina.retry(on=aiohttp.ClientError, attempts=3)
async def fetch_order(session: aiohttp.ClientSession) -> Any:
    async with session.get("/orders/7") as response:
        return await response.json()


@stamina.retry(on=aiohttp.ClientError, attempts=3)
async def place_order(session: aiohttp.ClientSession, order: Any) -> None:
    async with session.post("/orders", data=order):
        pass


@stamina.retry(on=aiohttp.ClientError, attempts=3)
async def upload(session: aiohttp.ClientSession, file: Any) -> None:
    async with session.put("/report", data=file):
        pass
