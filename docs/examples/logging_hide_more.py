import asyncio

from aioretry_smithy import LoggingClient, RequestLog, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport

LOGGING = LoggingClient.new_decorator(
    sensitive_headers=["X-Customer"],
    sensitive_query_parameters=["email"],
)


async def main() -> None:
    builder = (
        SessionBuilder("https://me:1234@api.example.com")
        .decorator(ScriptedTransport([200]))
        .decorator(LOGGING)
    )
    async with builder.build() as session:
        response = await session.get(
            "/orders?email=ann@example.com&page=2", headers={"X-Customer": "Ann"}
        )
        log = RequestLog.of(response)
        print(log.render())
        print(log.to_dict()["request_headers"])


asyncio.run(main())
