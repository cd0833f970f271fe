import asyncio
from dataclasses import dataclass

from aioretry_smithy import RequestLog, RetryingClient, SessionBuilder
from aioretry_smithy.smithy import (
    ExponentialRetryBackoffStrategy,
    RetryError,
    RetryInfo,
)
from aioretry_smithy.testing import ScriptedTransport


@dataclass(frozen=True)
class Token:
    retry_count: int
    retry_delay: float


class PatientWhenThrottled:
    """Six attempts where the server throttles, two where anything else fails."""

    def __init__(self) -> None:
        self.backoff_strategy = ExponentialRetryBackoffStrategy(backoff_scale_value=0.5)
        self.max_attempts = 6

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> Token:
        return Token(retry_count=0, retry_delay=0.0)

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Token, error: Exception
    ) -> Token:
        info = RetryInfo.of(error)
        attempts_made = token_to_renew.retry_count + 1
        most = self.max_attempts if info.is_throttling_error else 2
        if not info.allows_retry or attempts_made >= most:
            raise RetryError(f"no retry after {attempts_made} attempts: {error}")
        delay = self.backoff_strategy.compute_next_backoff_delay(attempts_made)
        return Token(attempts_made, max(delay, info.retry_after or 0.0))

    def record_success(self, *, token: Token) -> None:
        pass


async def call(*answers: object) -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(answers))
        .decorator(RetryingClient.new_decorator(PatientWhenThrottled()))
    )
    async with builder.build() as session, session.get("/orders") as response:
        log = RequestLog.of(response)
        print(log.render(), log.retry_error, sep="\n", end="\n\n")


async def main() -> None:
    await call(429, 429, 429, 200)
    await call(503, 503)


asyncio.run(main())
