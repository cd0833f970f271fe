import asyncio

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport

strategy = RetryStrategy.failsafe(Backoff.fixed(0.1))
usual = RetryConfig(strategy, max_total_attempts=3, attempt_timeout=2.0)
settings = {
    "search.example.com:443": RetryConfig(strategy, attempt_timeout=0.5),
    "payments.example.com:443": RetryConfig.no_retry(),
}


def settings_for(host: str) -> RetryConfig:
    print("settings for", host)
    return settings.get(host, usual)


async def main() -> None:
    decorator = RetryingClient.new_mapped_decorator(
        RetryConfigMapping.per_host(settings_for)
    )
    builder = (
        SessionBuilder()
        .decorator(ScriptedTransport([503] * 17))
        .decorator(decorator)
        .response_timeout(10.0)
    )
    async with builder.build() as session:
        for url in (
            "https://orders.example.com/",
            "https://search.example.com/",
            "https://payments.example.com/",
            "https://orders.example.com/7",
        ):
            async with session.get(url) as response:
                attempts = RequestLog.of(response).total_attempts
            print(f"{url}: attempts: {attempts}")


asyncio.run(main())
