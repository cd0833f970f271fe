from typing import Any, Protocol

import aiohttp
import backoff


def new_session(base_url: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(base_url, raise_for_status=True)


@backoff.on_exception(backoff.expo, aiohttp.ClientError, max_tries=3)
async def fetch_order(session: aiohttp.ClientSession) -> Any:
    async with session.get("/orders/7") as response:
        return await response.json()


@backoff.on_exception(backoff.expo, aiohttp.ClientError, max_tries=3)
async def place_order(session: aiohttp.ClientSession, order: Any) -> None:
    async with session.post("/orders", data=order):
        pass


@backoff.on_exception(backoff.expo, aiohttp.ClientError, max_time=10)
async def fetch_in_time(session: aiohttp.ClientSession) -> Any:
    async with session.get("/orders/7") as response:
        return await response.json()


def is_pending(answer: Any) -> bool:
    return answer is None or bool(answer["state"] == "pending")


@backoff.on_predicate(backoff.constant, is_pending, interval=2, max_tries=3)
async def fetch_when_done(session: aiohttp.ClientSession) -> Any:
    async with session.get("/orders/7") as response:
        return await response.json()


class NotLoggedInError(Exception):
    pass


class Client(Protocol):
    async def log_in(self) -> None: ...

    async def fetch(self) -> Any: ...


async def log_in_again(details: Any) -> None:
    (client,) = details["args"]
    await client.log_in()


@backoff.on_exception(
    backoff.expo, NotLoggedInError, max_tries=2, on_backoff=log_in_again
)
async def fetch_as_user(client: Client) -> Any:
    return await client.fetch()
