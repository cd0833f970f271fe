import asyncio

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    Decorator,
    HttpClient,
    HttpRequest,
    SessionBuilder,
    client_decorator,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport


def last_good_answer() -> Decorator:
    answers = {}

    @client_decorator
    async def remembering(
        delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        key = request.method, request.full_url()
        response = await delegate.execute(ctx, request)
        if response.status == 200:
            answers[key] = await response.read()
        elif response.status >= 500 and key in answers:
            response.release()
            return new_response(request, headers={"X-Stale": "1"}, body=answers[key])
        return response

    return remembering


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([(200, {}, b"[1, 2]"), 503]))
        .decorator(last_good_answer())
    )
    async with builder.build() as session:
        for _ in range(2):
            async with session.get("/orders") as response:
                print(response.status, await response.text(), dict(response.headers))


asyncio.run(main())
