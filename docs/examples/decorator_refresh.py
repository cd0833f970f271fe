import asyncio
from collections.abc import Awaitable, Callable

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    Decorator,
    HttpClient,
    HttpRequest,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy.testing import ScriptedTransport


def refresh_on_401(token: str, fetch_token: Callable[[], Awaitable[str]]) -> Decorator:
    refreshes, lock = 0, asyncio.Lock()

    @client_decorator
    async def refreshing(
        delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        nonlocal token, refreshes
        refreshes_before = refreshes
        with_token = request.with_header("Authorization", f"Bearer {token}")
        response = await delegate.execute(ctx, with_token)
        if response.status != 401:
            return response
        response.release()  # given up, so its connection goes back
        async with lock:
            if refreshes == refreshes_before:  # no other call was faster
                token = await fetch_token()
                refreshes += 1
        with_token = request.with_header("Authorization", f"Bearer {token}")
        return await delegate.execute(ctx, with_token)

    return refreshing


async def fetch_token() -> str:
    print("refreshed")
    await asyncio.sleep(0.5)
    return "fresh"


def answer(ctx: ClientRequestContext, request: HttpRequest) -> int:
    return 200 if request.headers["Authorization"] == "Bearer fresh" else 401


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com", raise_for_status=True)
        .decorator(ScriptedTransport([answer] * 20))
        .decorator(refresh_on_401("stale", fetch_token))
    )
    async with builder.build() as session:
        calls = [session.post("/orders", json={"id": n}) for n in range(10)]
        responses = await asyncio.gather(*calls)
        print([response.status for response in responses])


asyncio.run(main())
