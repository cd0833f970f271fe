"""Several servers as one thing to call; they are killed and come back."""

import asyncio
import gc
import io
import shutil
import sys
import weakref
from asyncio.subprocess import PIPE
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from calls import call_of
from chains import connected
from stream_server import Replica, at_a_rate, free_port, running

from aioretry_smithy import (
    EndpointGroup,
    EndpointSelectionStrategy,
    RequestLog,
    RetryConfig,
    RetryingClient,
    SessionBuilder,
    capture_logs,
    client_decorator,
)

CALLS_A_SECOND = 500


@pytest.mark.long
async def test_nobody_notices_that_a_replica_dies_and_comes_back():
    """With 500 calls a second no GET fails, and few meet the dead one."""
    replicas = [Replica() for _ in range(3)]
    async with running(*replicas):
        group = EndpointGroup.of(*(each.url for each in replicas))
        retrying = RetryingClient.new_decorator(RetryConfig.standard())
        builder = SessionBuilder(group).decorator(retrying)
        async with builder.response_timeout(10.0).build() as session:
            with capture_logs() as logs:

                async def call():
                    async with session.get("/orders") as response:
                        assert 200 == response.status
                        await response.read()

                async def trouble():
                    await asyncio.sleep(2.0)
                    await replicas[1].kill()
                    await asyncio.sleep(4.0)
                    await replicas[1].start()

                troubling = asyncio.create_task(trouble())
                failures = await at_a_rate(CALLS_A_SECOND, 10.0, call)
                await troubling

    refused = [
        attempt
        for log in logs
        for attempt in log.children
        if attempt.response_cause.__class__.__name__ == "ClientConnectorError"
    ]
    known = min(each.started + (each.duration or 0.0) for each in refused)
    # A busy machine may have several under way until the first refusal is heard of.
    later = [each for each in refused if each.started > known]
    assert [] == [RequestLog.of(each).render() for each in failures]
    assert CALLS_A_SECOND < len(logs)
    assert len(later) <= 3
    assert min(each.requests for each in replicas) > 100


@pytest.mark.long
async def test_list_that_changes_under_load_loses_no_call():
    """With 500 calls a second; what was removed gets nothing after the next query."""
    addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    port = free_port(*addresses)
    replicas = {each: Replica(each, port) for each in addresses}
    listed = addresses[:2]

    async def resolver(host, port):
        return [(each, 1.0) for each in listed]

    async with running(*replicas.values()):
        group = EndpointGroup.dns(f"http://orders.test:{port}", resolver=resolver)
        retrying = RetryingClient.new_decorator(RetryConfig.standard())
        builder = SessionBuilder(group).decorator(retrying)
        async with builder.response_timeout(10.0).build() as session:

            async def call():
                async with session.get("/orders") as response:
                    assert 200 == response.status
                    await response.read()

            async def change():
                await asyncio.sleep(2.0)
                listed[:] = addresses[1:]
                await asyncio.sleep(1.5)
                return replicas[addresses[0]].requests

            changing = asyncio.create_task(change())
            failures = await at_a_rate(CALLS_A_SECOND, 6.0, call)
            by_then = await changing

    assert [] == [RequestLog.of(each).render() for each in failures]
    assert 100 < by_then == replicas[addresses[0]].requests
    assert min(each.requests for each in replicas.values()) > 100


PROCESS = Path(__file__).parents[1] / "support" / "processes" / "web_process.py"
SLOWLY = 20
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
            failures = await at_a_rate(SLOWLY, seconds, call)
            await restarting

    assert [] == [RequestLog.of(each).render() for each in failures]
    return logs


IN_ORDER = EndpointSelectionStrategy.in_order()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"


def group_of(*urls, **settings):
    """Make a group of servers that are asked in order."""
    return EndpointGroup.of(*urls, selection=IN_ORDER, **settings)


def in_flight(group):
    """Return how many requests are under way at each endpoint."""
    return [each.in_flight for each in group.states.values()]


async def test_in_flight_lasts_to_the_end_of_the_body(serve):
    """Case 100: and ends where it is read, released or closed."""
    gate = asyncio.Event()
    url = await serve([HEAD, gate, b"123456789"])
    group = group_of(url)
    async with connected(group) as session:
        seen = []
        for end in (aiohttp.ClientResponse.read, aiohttp.ClientResponse.close):
            gate.clear()
            response = await session.get("/")
            seen.append(in_flight(group))
            gate.set()
            ended = end(response)
            if ended is not None:
                await ended
            seen.append(in_flight(group))

    assert [[1], [0], [1], [0]] == seen


async def test_connection_in_the_pool_does_not_keep_the_call(serving):
    """Nor its body: it has the context that it was opened in, while it is open."""
    calls = []

    class Body(io.BytesIO):
        """One that can be watched."""

    @client_decorator
    async def notice(delegate, ctx, request):
        calls.extend([weakref.ref(call_of(ctx)), weakref.ref(request.options["data"])])
        return await delegate.execute(ctx, request)

    async def answer(request):
        return web.Response(body=await request.read())

    server = await serving(answer)
    async with connected(group_of(server.make_url("/")), notice) as session:
        async with session.post("/", data=Body(b"1")) as response:
            await response.read()
        del response
        gc.collect()
        kept = [each() for each in calls]

    assert [None, None] == kept


async def test_task_that_outlives_a_call_is_none_of_it(serving):
    """It may follow a redirect away from the endpoint of that."""
    gate, tasks = asyncio.Event(), []

    async def answer(request):
        if request.path == "/away":
            raise web.HTTPFound(stranger.make_url("/"))
        return web.Response()

    server, stranger = await serving(answer), await serving(answer)

    async def go_away():
        await gate.wait()
        async with other_session.get(server.make_url("/away")) as response:
            return response.url

    @client_decorator
    async def begin(delegate, ctx, request):
        tasks.append(asyncio.create_task(go_away()))
        return await delegate.execute(ctx, request)

    group, other = group_of(server.make_url("/")), group_of(stranger.make_url("/"))
    async with connected(group, begin) as session, connected(other) as other_session:
        async with session.get("/"):
            pass
        gate.set()
        assert [stranger.make_url("/")] == await asyncio.gather(*tasks)

    assert [0] == in_flight(group)
