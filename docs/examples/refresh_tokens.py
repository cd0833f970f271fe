import asyncio

from aioretry_smithy import (
    ClientRequestContext,
    HttpRequest,
    RefreshingClient,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


class Service:
    valid = "first"

    async def fetch_token(self) -> str:
        print("fetching a token")
        await asyncio.sleep(0.5)
        return self.valid

    def answer(self, ctx: ClientRequestContext, request: HttpRequest) -> int:
        token = request.headers["Authorization"]
        return 200 if token == f"Bearer {self.valid}" else 401


async def main() -> None:
    service = Service()
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([service.answer] * 30))
        .decorator(RefreshingClient.new_decorator(service.fetch_token))
        .decorator(RetryingClient.new_decorator(RetryStrategy.failsafe()))
    )
    async with builder.build() as session:
        await session.get("/orders")
        service.valid = "second"
        calls = [session.post("/orders", json={"id": n}) for n in range(10)]
        responses = await asyncio.gather(*calls)
        print([response.status for response in responses])
        print(RequestLog.of(responses[0]).render())


asyncio.run(main())
