import asyncio

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRule,
    CircuitBreakerRuleWithContent,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


def is_error(content: bytes | None) -> bool:
    return content is not None and b'"errors"' in content


rules = CircuitBreakerRule.ignore(
    request_filter=lambda request: request.url.path == "/events"
) | CircuitBreakerRuleWithContent(on_content=is_error, max_content_length=4096)


async def main() -> None:
    breaker = CircuitBreaker("orders", minimum_request_threshold=3)
    answers = [{"data": 1}, {"errors": ["busy"]}, {"errors": ["down"]}]
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(answers))
        .decorator(CircuitBreakerClient.new_decorator(breaker, rules))
    )
    async with builder.build() as session:
        for _ in answers:
            async with session.get("/graphql") as response:
                print(response.status, await response.json(), breaker.state)


asyncio.run(main())
