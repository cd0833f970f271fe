"""A call as a command for curl, and as an archive for the tools of a browser."""

import asyncio
import json
import sys
from pathlib import Path

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport


async def call() -> RequestLog:
    strategy = RetryStrategy.failsafe(Backoff.fixed(0.4))
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([503, 404]))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session:
        headers = {"Accept": "text/csv", "Authorization": "Bearer S3CR3T"}
        query = {"name": "O'Hara", "token": "S3CR3T"}
        async with session.get("/orders", params=query, headers=headers) as response:
            return RequestLog.of(response)


log = asyncio.run(call())
print(log.to_curl())

archive = log.to_har()
for entry in archive["log"]["entries"]:
    print(entry["_attempt"], entry["response"]["status"], entry.get("_delay"))
if sys.argv[1:]:
    Path(sys.argv[1]).write_text(json.dumps(archive))
