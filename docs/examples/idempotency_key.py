import asyncio

from aioretry_smithy import (
    IdempotencyKeyClient,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


async def main() -> None:
    transport = ScriptedTransport([503, 200, 200, 200])
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(transport)
        .decorator(RetryingClient.new_decorator(RetryStrategy.failsafe()))
        .decorator(IdempotencyKeyClient.new_decorator())  # outside: one key a call
    )
    async with builder.build() as session:
        await session.post("/payments", json={"amount": 7})
        await session.post("/payments", headers={"Idempotency-Key": "mine"})
        await session.post("https://elsewhere.example.com/")
    first, retry, own, stranger = (
        request.headers.get("Idempotency-Key") for request in transport.requests
    )
    print(first is not None, first == retry, own, stranger)


asyncio.run(main())
