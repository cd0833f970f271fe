import asyncio

from aioretry_smithy import SessionBuilder, client_decorator
from aioretry_smithy.testing import ScriptedTransport


def refresh_on_401(token, fetch_token):
    @client_decorator
    async def refreshing(delegate, ctx, request):
        nonlocal token
        with_token = request.with_header("Authorization", f"Bearer {token}")
        response = await delegate.execute(ctx, with_token)
        if response.status != 401:
            return response
        response.release()  # given up, so its connection goes back
        token = await fetch_token()
        with_token = request.with_header("Authorization", f"Bearer {token}")
        return await delegate.execute(ctx, with_token)

    return refreshing


async def fetch_token():
    return "fresh"


async def main():
    transport = ScriptedTransport([401, 200])
    builder = (
        SessionBuilder("https://api.example.com", raise_for_status=True)
        .decorator(transport)
        .decorator(refresh_on_401("stale", fetch_token))
    )
    order = {"id": 1}
    async with builder.build() as session, session.post("/", json=order) as response:
        sent = [request.headers["Authorization"] for request in transport.requests]
        print(response.status, sent)


asyncio.run(main())
