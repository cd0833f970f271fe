"""One server in a process of its own is killed, and started again some time later.

Calls reach it directly, or by a gateway, which answers 502 meanwhile.
"""

import asyncio
import shutil
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


@asynccontextmanager
async def gateway(url, folder):
    """Yield the URL of an nginx in front of a server."""
    port = free_port("127.0.0.1")
    paths = "client_body", "proxy", "fastcgi", "uwsgi", "scgi"
    settings = [f"{name}_temp_path {folder}/{name};" for name in paths]
    place = f"listen 127.0.0.1:{port}; location / {{ proxy_pass {url}; }}"
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; events {{}}"
        f" http {{ access_log off; {' '.join(settings)} server {{ {place} }} }}"
    )
    process = await asyncio.create_subprocess_exec(
        "nginx", "-p", folder, "-c", file, "-e", folder / "errors"
    )
    try:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                assert process.returncode is None
                await asyncio.sleep(0.01)
            else:
                writer.close()
                await writer.wait_closed()
                break
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


EACH_TIME = pytest.mark.parametrize(
    "away",
    [0.3, *(pytest.param(each, marks=pytest.mark.long) for each in (1.0, 3.0))],
    ids=str,
)


@pytest.mark.slow
@EACH_TIME
async def test_no_call_is_lost_while_the_server_is_away(away):
    """GETs go on meanwhile, 20 a second; each of them is answered."""
    async with servers(2) as (url, them):
        logs = await logs_of_a_restart(url, *them, away)

    assert any(log.total_attempts > 1 for log in logs)


@pytest.mark.slow
@EACH_TIME
@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
async def test_no_call_is_lost_by_a_gateway(away, tmp_path):
    """What it answers while the server is away is no answer for the caller."""
    async with servers(2) as (url, them), gateway(url, tmp_path) as outside:
        logs = await logs_of_a_restart(outside, *them, away)

    attempts = [attempt for log in logs for attempt in log.children]
    assert {200, 502} == {attempt.response_status for attempt in attempts}


async def logs_of_a_restart(url, first, second, away):
    """Call a server that is killed and started again; return the logs of the calls."""
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
    return logs
