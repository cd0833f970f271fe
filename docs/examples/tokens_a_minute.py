import asyncio
import json
from typing import Any

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    HttpRequest,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop


def estimate(ctx: ClientRequestContext, request: HttpRequest) -> float:
    """Guess the tokens: a fourth of the characters, and the longest answer."""
    question = request.options["json"]
    longest: int = question["max_tokens"]
    return len(question["prompt"]) / 4 + longest


def used(log: RequestLog, content: bytes | None) -> float | None:
    """Read how many tokens there were, where the answer says so."""
    if log.response_status != 200 or content is None:
        return None
    usage: dict[str, float] = json.loads(content)["usage"]
    return usage["total_tokens"]


requests = RateLimit(60, per=60.0, burst=10)
tokens = RateLimit(90_000, per=60.0, burst=9_000, cost=estimate, actual=used)

SHORT: dict[str, Any] = {"answer": "...", "usage": {"total_tokens": 1_500}}
LONG: dict[str, Any] = {"answer": "...", "usage": {"total_tokens": 3_900}}


async def ask(session: aiohttp.ClientSession, prompt: str) -> None:
    question = {"prompt": prompt, "max_tokens": 3_000}
    async with session.post("/chat", json=question) as response:
        answer = await response.json()
        log = RequestLog.of(response)
    print(f"{answer['usage']['total_tokens']} tokens after {log.delay or 0.0:.1f} s")


async def main() -> None:
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([SHORT, SHORT, LONG, SHORT, LONG, LONG]))
        .decorator(RateLimitingClient.new_decorator([requests, tokens]))
        .decorator(
            RetryingClient.new_decorator(RetryStrategy.failsafe(), buffer_response=True)
        )
    )
    async with builder.build() as session:
        for _ in range(6):
            await ask(session, "Why? " * 800)


# In virtual time, so that nobody waits; ``asyncio.run(main())`` is the usual way.
with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    runner.run(main())
