import asyncio

from aioretry_smithy import CircuitBreaker, CircuitBreakerClient, SessionBuilder, unwrap
from aioretry_smithy.testing import ScriptedTransport


def breaker(key: str) -> CircuitBreaker:
    return CircuitBreaker(key, minimum_request_threshold=2)


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 503, 200]))
        .decorator(CircuitBreakerClient.new_per_path_decorator(breaker))
    )
    async with builder.build() as session:
        for path in "/reports?day=1", "/reports?day=2", "/orders":
            await session.get(path)
        client = unwrap(session, CircuitBreakerClient)
        assert client is not None
        for key, each in client.circuit_breakers.items():
            print(key, each.state)


asyncio.run(main())
