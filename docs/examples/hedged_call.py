"""A call with two attempts: the first is refused, the second is late and has a hedge.

Prints its log; ``--pictures DIRECTORY`` draws it as well.
"""

import argparse
import asyncio
from pathlib import Path

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    HedgingClient,
    HttpRequest,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedAnswer, ScriptedTransport, VirtualTimeLoop


def answer_after(seconds: float, status: int) -> ScriptedAnswer:
    async def answer(ctx: ClientRequestContext, request: HttpRequest) -> int:
        await asyncio.sleep(seconds)
        return status

    return answer


ANSWERS = [
    answer_after(0.04, 429),
    answer_after(0.09, 503),
    answer_after(5.0, 200),
    answer_after(0.06, 200),
]


async def call() -> RequestLog:
    async with (
        SessionBuilder("http://orders.example")
        .decorator(ScriptedTransport(ANSWERS))
        .decorator(HedgingClient.new_decorator(0.25))
        .decorator(
            RetryingClient.new_decorator(RetryStrategy.failsafe(Backoff.fixed(0.2)))
        )
        .build() as session,
        session.get("/orders/7") as response,
    ):
        return RequestLog.of(response)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", metavar="DIRECTORY", help="draw it, as SVG")
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        log = runner.run(call())
    print(log.render())
    if arguments.pictures:
        log.to_svg(Path(arguments.pictures) / "hedged-call.svg")


if __name__ == "__main__":
    main()
