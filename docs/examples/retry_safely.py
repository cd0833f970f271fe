import asyncio
import uuid
from typing import Any

import aiohttp

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    request_options,
)
from aioretry_smithy.testing import ScriptedTransport


async def pay(session: aiohttp.ClientSession, **arguments: Any) -> None:
    async with session.post("/payments", json={"amount": 5}, **arguments) as response:
        print(RequestLog.of(response).render(), end="\n\n")


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 503, 201, 503, 201]))
        .decorator(
            RetryingClient.new_decorator(RetryStrategy.failsafe(Backoff.fixed(0.5)))
        )
    )
    async with builder.build() as session:
        # A POST: sent once.
        await pay(session)
        # The service knows such keys: one for each payment, the same for all attempts.
        await pay(session, headers={"Idempotency-Key": f'"{uuid.uuid4()}"'})
        # You know that this service does not mind repetitions.
        with request_options(idempotent=True):
            await pay(session)


asyncio.run(main())
