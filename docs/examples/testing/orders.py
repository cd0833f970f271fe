import aiohttp

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)


class RetryOnConflict(RetryStrategy):
    def __init__(self) -> None:
        self.backoff = Backoff.exponential(1.0, 10.0)

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | None:
        return self.backoff if ctx.log.response_status == 409 else None


def with_our_chain(builder: SessionBuilder) -> SessionBuilder:
    decorator = RetryingClient.new_decorator(RetryOnConflict(), attempt_timeout=5.0)
    return builder.decorator(decorator).response_timeout(20.0)


async def count_orders(session: aiohttp.ClientSession) -> int:
    async with session.get("/orders", raise_for_status=True) as response:
        return len(await response.json())
