import asyncio
from typing import Any

import aiohttp

from aioretry_smithy import (
    Decorator,
    RetryingRpcClient,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    decorate,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport


class Orders:
    """A client whose users pass a session of their own."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session  # theirs: neither decorated nor closed here

    @rpc(RetryingRpcClient.new_decorator(RetryStrategy.failsafe()), idempotent=True)
    async def order(self, number: int) -> Any:
        url = f"https://api.example.com/orders/{number}"
        async with self._session.get(url, raise_for_status=True) as response:
            return await response.json()


class OrdersWithOwnChain:
    """The same with all decorators, on the connections of the session given."""

    def __init__(self, session: aiohttp.ClientSession, *inside: Decorator) -> None:
        self._session = SessionBuilder.standard(
            inside=inside,
            connector=session.connector,
            connector_owner=False,  # close() leaves theirs open
            headers=session.headers,
            cookie_jar=session.cookie_jar,
        ).build()

    async def order(self, number: int) -> Any:
        url = f"https://api.example.com/orders/{number}"
        async with self._session.get(url, raise_for_status=True) as response:
            return await response.json()

    async def close(self) -> None:
        await self._session.close()


async def main() -> None:
    async with aiohttp.ClientSession() as session:
        own = OrdersWithOwnChain(session, ScriptedTransport([503, {"order": "tea"}]))
        with capture_logs() as logs:
            print(await own.order(7))
        print(logs[0].render(), end="\n\n")
        await own.close()

        decorate(session, ScriptedTransport([503, {"order": "tea"}]))  # no network
        with capture_logs() as logs:
            print(await Orders(session).order(7))
        print(logs[0].render())


asyncio.run(main())
