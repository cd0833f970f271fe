import asyncio
import logging
import sys

from aioretry_smithy import LoggingClient, RequestLog, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message).9s")


class PerSecond:
    """Log at most so many calls a second."""

    def __init__(self, most: int) -> None:
        self.most = self.left = most
        self.second = 0

    def is_sampled(self, log: RequestLog) -> bool:
        second = int(asyncio.get_running_loop().time())
        if second != self.second:
            self.second, self.left = second, self.most
        self.left -= 1
        return self.left >= 0


async def main() -> None:
    logging_ = LoggingClient.new_decorator(failure_sampling_rate=PerSecond(1))
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503] * 100))
        .decorator(logging_)
    )
    async with builder.build() as session:
        for _ in range(100):
            await session.get("/orders")


asyncio.run(main())
