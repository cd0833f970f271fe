"""The vectors of all SDKs, replayed through the retrying client at a real server."""

from __future__ import annotations

import asyncio
import json
import selectors
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientTimeout, web
from aiohttp.test_utils import TestServer
from chains import connected, retrying
from standard_vectors import load

from aioretry_smithy import RequestLog, RetryStopReason

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from standard_vectors import Step

OUTCOMES = {
    None: "success",
    RetryStopReason.NO_RETRY: "not_retryable",
    RetryStopReason.MAX_TOTAL_ATTEMPTS: "max_attempts_exceeded",
    RetryStopReason.LIMITER: "quota_exceeded",
}
HURRY = 200.0
"""Seconds of the loop in one of the world's: the vectors wait for minutes."""


class HurriedLoop(asyncio.SelectorEventLoop):
    """A loop with real sockets and short seconds."""

    def __init__(self) -> None:
        super().__init__(HurriedSelector())

    def time(self) -> float:
        return super().time() * HURRY


class HurriedSelector(selectors.DefaultSelector):
    """Waits for as long as the loop means it."""

    def select(self, timeout: float | None = None) -> Any:
        return super().select(None if timeout is None else timeout / HURRY)


class Service:
    """A server that answers as the steps say, and looks at the quota meanwhile."""

    def __init__(self, strategy: Any) -> None:
        self.strategy = strategy
        self.steps: list[Step] = []
        self.quotas: list[int] = []
        self.scope = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.look()
        said = self.steps[len(self.quotas) - 1].response
        code = said.get("code")
        return web.Response(
            status=said["status"],
            headers=said.get("headers"),
            content_type="application/x-amz-json-1.0",
            body=b"" if code is None else json.dumps({"__type": code}).encode(),
        )

    def look(self) -> None:
        self.quotas.append(self.strategy.quota_for(self.scope).available_capacity)


async def replay(
    client: ClientSession, service: Service, call: list[Step]
) -> list[tuple[str, int, float | None]]:
    """Make one call and return what happened after each attempt."""
    service.steps, service.quotas = call, []
    async with client.get("/") as response:
        log = RequestLog.of(response)
        service.look()
    outcomes = ["retry"] * (len(log.children) - 1) + [OUTCOMES[log.stop_reason]]
    delays = [child.delay for child in log.children]
    return list(zip(outcomes, service.quotas[1:], delays, strict=True))


async def replay_all(vector: Any) -> None:
    strategy = vector.new_strategy()
    service = Service(strategy)
    app = web.Application()
    app.router.add_get("/", service.answer)
    async with TestServer(app) as server:
        service.scope = f"{server.host}:{server.port}"
        async with (
            # No limit of aiohttp's either, which would be short here.
            connected(
                server.make_url("/"),
                retrying(strategy, use_retry_after=False),
                timeout=ClientTimeout(),
            ) as client
        ):
            for call in vector.calls:
                happened = await replay(client, service, call)

                assert [
                    (step.outcome, step.quota, delay_of(step)) for step in call
                ] == happened


def delay_of(step: Step) -> Any:
    if step.outcome == "retry":
        return pytest.approx(step.delay)
    if not step.refused_delay:
        return None
    # A wait in vain is measured, by the clock that is in a hurry: a second of the world
    # is long there.
    return pytest.approx(step.refused_delay + HURRY / 2, abs=HURRY / 2)


@pytest.mark.parametrize("vector", load(), ids=lambda vector: vector.id)
def test_standard_vector(vector):
    """Attempts, quota, delays and the reason to stop are those of the other SDKs."""
    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        runner.run(replay_all(vector))
