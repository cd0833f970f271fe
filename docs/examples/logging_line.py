import asyncio
import logging
import sys

from aioretry_smithy import SessionBuilder
from aioretry_smithy.testing import ScriptedTransport

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")


async def main() -> None:
    answers = [503, 200, 404, *[503] * 6]
    builder = SessionBuilder.standard(
        "https://api.example.com", inside=[ScriptedTransport(answers)]
    )
    async with builder.build() as session:
        for path in "/orders", "/orders/7", "/prices":
            async with session.get(path):
                pass


asyncio.run(main())
