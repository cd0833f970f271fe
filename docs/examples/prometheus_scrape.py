import asyncio
import re

from prometheus_client import CollectorRegistry, generate_latest

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    ClientRequestContext,
    HttpRequest,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.prometheus import (
    CircuitBreakerMetrics,
    MetricsClient,
    RetryBudgetMetrics,
)
from aioretry_smithy.testing import ScriptedTransport

registry = CollectorRegistry()  # without the argument: the default one
metrics = MetricsClient.new_decorator(registry)
breakers = CircuitBreakerMetrics(registry)


async def late_503(ctx: ClientRequestContext, request: HttpRequest) -> int:
    await asyncio.sleep(0.25)
    return 503


builder = (
    SessionBuilder("https://shop.example")
    .decorator(ScriptedTransport([late_503, 503, 200, 404]))
    .decorator(
        CircuitBreakerClient.new_per_host_decorator(
            lambda host: CircuitBreaker(host, listeners=[breakers])
        )
    )
    .decorator(metrics)  # attempts
    .decorator(
        RetryingClient.new_decorator(
            RetryStrategy.failsafe(Backoff.fixed(0.5)),
            limiter=RetryBudget.per_host(listeners=[RetryBudgetMetrics(registry)]),
        )
    )
    .decorator(metrics)  # calls
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
