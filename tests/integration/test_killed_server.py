"""One server in a process of its own is killed, and started again some time later."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from live_replicas import at_a_rate, free_port

from aioretry_smithy import RequestLog, SessionBuilder, capture_logs

PROCESS = Path(__file__).parents[1] / "support" / "processes" / "web_process.py"
CALLS_A_SECOND = 20
BEFORE = AFTER = 0.5


class Server:
    """A process that listens when it is told to, until it is killed."""

    def __init__(self, process):
        self._process = process

    async def listen(self):
        self._process.stdin.write(b"\n")
        assert b"ready" == (await self._process.stdout.readline()).strip()

    async def kill(self):
        if self._process.returncode is None:
            self._process.kill()
        # Its pipes end with it.
        await self._process.communicate()


@asynccontextmanager
async def servers(number):
    """Yield a URL, and servers for it that have begun, of which none listens yet."""
    port = free_port("127.0.0.1")
    async with AsyncExitStack() as stack:
        them = []
        for _ in range(number):
            process = await asyncio.create_subprocess_exec(
                sys.executable, PROCESS, str(port), stdin=PIPE, stdout=PIPE
            )
            them.append(Server(process))
            stack.push_async_callback(them[-1].kill)
        yield f"http://127.0.0.1:{port}", them


@pytest.mark.parametrize(
    "away",
    [0.3, *(pytest.param(each, marks=pytest.mark.long) for each in (1.0, 3.0))],
    ids=str,
)
async def test_no_call_is_lost_while_the_server_is_away(away):
    """GETs go on meanwhile, 20 a second; each of them is answered."""
    async with servers(2) as (url, (first, second)):
        await first.listen()
        builder = SessionBuilder.standard(url, logging=None)
        async with builder.build() as session:
            with capture_logs() as logs:

                async def call():
                    async with session.get("/orders") as response:
                        assert 200 == response.status
                        assert "/orders" == await response.text()

                async def restart():
                    await asyncio.sleep(BEFORE)
                    await first.kill()
                    await asyncio.sleep(away)
                    await second.listen()

                restarting = asyncio.create_task(restart())
                seconds = BEFORE + away + AFTER
                failures = await at_a_rate(CALLS_A_SECOND, seconds, call)
                await restarting

    assert [] == [RequestLog.of(each).render() for each in failures]
    assert any(log.total_attempts > 1 for log in logs)
