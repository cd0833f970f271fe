from typing import Any

import aiohttp
import tenacity

RETRYING: dict[str, Any] = {
    "stop": tenacity.stop_after_attempt(3),
    "wait": tenacity.wait_random_exponential(multiplier=0.2, max=10),
    "retry": tenacity.retry_if_exception_type(aiohttp.ClientError),
    "reraise": True,
}


def new_session(base_url: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(base_url, raise_for_status=True)


@tenacity.retry(**RETRYING)
async def fetch_order(session: aiohttp.ClientSession) -> Any:
    async with session.get("/orders/7") as response:
        return await response.json()


@tenacity.retry(**RETRYING)
async def place_order(session: aiohttp.ClientSession, order: Any) -> None:
    async with session.post("/orders", data=order):
        pass


@tenacity.retry(**RETRYING)
async def upload(session: aiohttp.ClientSession, file: Any) -> None:
    async with session.put("/report", data=file):
        pass
