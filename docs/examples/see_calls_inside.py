"""A report that is made of several requests, and that was stale at first.

Prints its log; ``--pictures DIRECTORY`` draws it as well.
"""

import argparse
import asyncio
from pathlib import Path

import aiohttp

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    HttpRequest,
    RetryingClient,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    rpc,
)
from aioretry_smithy.testing import ScriptedAnswer, ScriptedTransport, VirtualTimeLoop


def answer_after(
    seconds: float, status: int = 200, body: bytes = b""
) -> ScriptedAnswer:
    async def answer(
        ctx: ClientRequestContext, request: HttpRequest
    ) -> tuple[int, dict[str, str], bytes]:
        await asyncio.sleep(seconds)
        return status, {}, body

    return answer


ORDERS = (
    answer_after(0.1, 503),
    answer_after(0.2, 200, b"17 orders"),
    answer_after(0.2, 200, b"17 orders"),
)
PRICES = (
    answer_after(9.0),
    answer_after(0.3, 200, b"of yesterday"),
    answer_after(0.3, 200, b"of today"),
)


class StaleError(Exception):
    pass


@rpc(
    RetryingRpcClient.new_decorator(
        RetryRule(on_timeout=True, backoff=Backoff.fixed(0.4)), attempt_timeout=1.0
    )
)
async def load_prices(prices: aiohttp.ClientSession) -> str:
    async with prices.get("/today", params={"token": "S3CR3T"}) as response:
        return await response.text()


@rpc(
    RetryingRpcClient.new_decorator(
        RetryRule(exceptions=[StaleError], backoff=Backoff.fixed(1.0))
    ),
    response_timeout=6.0,
)
async def fetch_report(
    orders: aiohttp.ClientSession, prices: aiohttp.ClientSession
) -> str:
    async with orders.get("/orders") as response:
        ordered = await response.text()
    loaded = await load_prices(prices)
    if loaded != "of today":
        raise StaleError(f"prices are {loaded}")
    return f"{ordered}, prices {loaded}"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", metavar="DIRECTORY", type=Path, help="draw it")
    arguments = parser.parse_args()
    retrying = RetryingClient.new_decorator(RetryStrategy.failsafe(Backoff.fixed(0.2)))
    async with (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(ORDERS))
        .decorator(retrying)
        .build() as orders,
        SessionBuilder("https://prices.example.com")
        .decorator(ScriptedTransport(PRICES))
        .build() as prices,
    ):
        with capture_logs() as logs:
            report = await fetch_report(orders, prices)
    (log,) = logs
    print(report, log.render(), sep="\n\n")
    if arguments.pictures:
        log.to_svg(arguments.pictures / "see-calls-inside.svg")


with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    runner.run(main())
