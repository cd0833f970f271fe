import asyncio
from typing import Any

import aiohttp

from aioretry_smithy import (
    Backoff,
    RetryingRpcClient,
    RetryRuleWithContent,
    SessionBuilder,
    capture_logs,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop


def is_busy(answer: dict[str, Any] | None) -> bool:
    return answer is not None and answer.get("error", {}).get("code") == -32000


@rpc(
    RetryingRpcClient.new_decorator(
        RetryRuleWithContent(on_content=is_busy, backoff=Backoff.fixed(0.1))
    )
)
async def call(session: aiohttp.ClientSession, method: str) -> Any:
    request = {"jsonrpc": "2.0", "id": 1, "method": method}
    async with session.post("/rpc", json=request) as response:
        return await response.json()


async def main() -> None:
    answers = [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "busy"}},
        {"jsonrpc": "2.0", "id": 1, "result": [17, 4]},
    ]
    builder = SessionBuilder("https://api.example.com")
    builder.decorator(ScriptedTransport(answers))
    async with builder.build() as session:
        with capture_logs() as logs:
            print(await call(session, "orders.list"))
    print(logs[0].render())


with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    runner.run(main())
