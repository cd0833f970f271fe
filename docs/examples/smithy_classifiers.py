import asyncio

from aioretry_smithy import RequestLog, RetryingClient, SessionBuilder
from aioretry_smithy.smithy import (
    DEFAULT_CLASSIFIERS,
    ErrorKind,
    Failure,
    RetryAction,
    StandardRetryStrategy,
    only_idempotent,
)
from aioretry_smithy.testing import ScriptedTransport


def conflicts_pass(
    failure: Failure, previous: RetryAction | None
) -> RetryAction | None:
    return RetryAction.retry() if failure.status == 409 else None


def maintenance_takes_seconds(
    failure: Failure, previous: RetryAction | None
) -> RetryAction | None:
    if failure.status == 503 and failure.code == "Maintenance":
        return RetryAction.retry(ErrorKind.THROTTLING, retry_after=3.0)
    return None


async def main() -> None:
    classifiers = [*DEFAULT_CLASSIFIERS, conflicts_pass, maintenance_takes_seconds]
    maintenance = (503, {"x-amzn-errortype": "Maintenance"}, b"")
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([409, maintenance, 200, 503]))
        .decorator(
            RetryingClient.new_decorator(
                StandardRetryStrategy(),
                classifiers=[*classifiers, only_idempotent],
            )
        )
    )
    async with builder.build() as session:
        async with session.put("/orders/7") as response:
            print(RequestLog.of(response).render(), end="\n\n")
        async with session.post("/orders") as response:
            log = RequestLog.of(response)
            print(log.render(), log.retry_error, sep="\n")


asyncio.run(main())
