import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aioretry_smithy import RequestLog, RetryingClient, SessionBuilder
from aioretry_smithy.smithy import RetryError, StandardRetryStrategy, StandardRetryToken
from aioretry_smithy.testing import ScriptedTransport


class AsLongAsSwitchedOn(StandardRetryStrategy):
    """The standard strategy, which an operator can switch off."""

    def __init__(
        self, is_switched_on: Callable[[], Awaitable[bool]], **settings: Any
    ) -> None:
        super().__init__(**settings)
        self.is_switched_on = is_switched_on

    async def refresh_retry_token_for_retry(
        self, *, token_to_renew: StandardRetryToken, error: Exception
    ) -> StandardRetryToken:
        if not await self.is_switched_on():
            raise RetryError("retries are switched off") from error
        return await super().refresh_retry_token_for_retry(
            token_to_renew=token_to_renew, error=error
        )


async def ask_operator() -> bool:
    await asyncio.sleep(0.01)  # a database query, for instance
    return False


async def main() -> None:
    strategy = AsLongAsSwitchedOn(ask_operator, max_attempts=5)
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503]))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session, session.get("/orders") as response:
        log = RequestLog.of(response)
        print(log.render(), log.retry_error, sep="\n")


asyncio.run(main())
