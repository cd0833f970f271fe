import random

import aiohttp
from orders import count_orders, with_our_chain

from aioretry_smithy import SessionBuilder
from aioretry_smithy.testing import (
    FaultInjectingClient,
    InjectedFault,
    ScriptedTransport,
)

CONFLICTS = InjectedFault.status(409, rate=0.3)
SLOWNESS = InjectedFault.latency((0.1, 1.0))
SILENCE = InjectedFault.hang(rate=0.02, request_filter=lambda r: r.method == "GET")


async def test_most_calls_survive() -> None:
    faults = FaultInjectingClient.new_decorator(
        SLOWNESS, SILENCE, CONFLICTS, random=random.Random(0).random
    )
    builder = SessionBuilder("https://api.example.com")
    builder.decorator(ScriptedTransport([1, 2] for _ in range(1000))).decorator(faults)
    failed = 0
    async with with_our_chain(builder).build() as session:
        for _ in range(100):
            try:
                assert await count_orders(session) == 2
            except (aiohttp.ClientError, TimeoutError):
                failed += 1

    assert failed == 3  # all by silence, which this chain does not retry
