import asyncio
from dataclasses import replace

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    HttpRequest,
    RequestLog,
    RetryConfig,
    RetryingClient,
    SessionBuilder,
    request_options,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport


async def slow(ctx: ClientRequestContext, request: HttpRequest) -> int:
    await asyncio.sleep(15)
    return 200


async def main() -> None:
    transport = ScriptedTransport([503, slow])
    builder = SessionBuilder.standard("https://api.example.com", inside=[transport])
    async with builder.build() as session:
        retrying = unwrap(session, RetryingClient)
        assert retrying
        assert isinstance(retrying.config, RetryConfig)
        patient = replace(retrying.config, attempt_timeout=None)
        silence = aiohttp.ClientTimeout(sock_read=30.0)
        with request_options(retry=patient, response_timeout=600.0):
            async with session.get("/export", timeout=silence) as response:
                print(RequestLog.of(response).render())


asyncio.run(main())
