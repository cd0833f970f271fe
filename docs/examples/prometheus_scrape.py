import asyncio
import re

from prometheus_client import CollectorRegistry, generate_latest

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    HttpRequest,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.prometheus import PrometheusMetrics
from aioretry_smithy.testing import ScriptedTransport

registry = CollectorRegistry()  # without the argument: the default one


async def late_503(ctx: ClientRequestContext, request: HttpRequest) -> int:
    await asyncio.sleep(0.25)
    return 503


builder = SessionBuilder.standard(
    "https://shop.example",
    inside=[ScriptedTransport([late_503, 503, 200, 404])],
    metrics=PrometheusMetrics(registry),
    strategy=RetryStrategy.failsafe(Backoff.fixed(0.5)),
    logging=None,
)


async def main() -> None:
    async with builder.build() as session:
        await session.get("/orders/1")
        await session.get("/orders/2")
    shown = re.compile(r"aioretry_smithy_\w+(?<!_bucket)(?<!_created)\{.* (?!0\.0$)")
    for line in generate_latest(registry).decode().splitlines():
        if shown.match(line):
            print(line)


asyncio.run(main())
