import asyncio

import aiohttp

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    DecoratingClient,
    Decorator,
    HttpClient,
    HttpRequest,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    UnprocessedRequestError,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport


class InFlightLimit(DecoratingClient):
    """Turn requests away when too many are under way."""

    def __init__(self, delegate: HttpClient, limit: int) -> None:
        super().__init__(delegate)
        self.limit = limit
        self.in_flight = 0

    @classmethod
    def new_decorator(cls, limit: int) -> Decorator:
        return lambda delegate: cls(delegate, limit)

    def describe(self) -> str:
        return f"InFlightLimit(limit={self.limit})"

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        if self.in_flight >= self.limit:
            raise UnprocessedRequestError(f"more than {self.limit} requests in flight")
        self.in_flight += 1
        try:
            return await self.delegate.execute(ctx, request)
        finally:
            self.in_flight -= 1


async def slow(ctx: ClientRequestContext, request: HttpRequest) -> int:
    await asyncio.sleep(0.4)
    return 200


async def main() -> None:
    strategy = RetryStrategy.on_unprocessed(Backoff.fixed(0.5))
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([slow, slow]))
        .decorator(InFlightLimit.new_decorator(1))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    print(builder.describe(), end="\n\n")
    async with builder.build() as session:
        calls = [session.post("/orders", json={"id": n}) for n in (1, 2)]
        for response in await asyncio.gather(*calls):
            print(RequestLog.of(response).render())
        if limit := unwrap(session, InFlightLimit):
            print(limit.in_flight, "in flight")


asyncio.run(main())
