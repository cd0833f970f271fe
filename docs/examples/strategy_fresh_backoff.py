import asyncio
import warnings

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


class Forgetful(RetryStrategy):
    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | None:
        if ctx.log.response_status == 503:
            return Backoff.exponential(0.5, 10.0)  # wrong: a new one each time
        return None


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 503, 503, 200]))
        .decorator(RetryingClient.new_decorator(Forgetful()))
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        async with builder.build() as session, session.get("/orders") as response:
            print(RequestLog.of(response).render())
    print(f"{caught[0].category.__name__}: {caught[0].message}")


asyncio.run(main())
