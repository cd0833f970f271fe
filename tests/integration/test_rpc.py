"""Functions whose attempts make requests to a real server, and other I/O."""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp
import pytest
from aiohttp import web
from chains import connected, retrying
from left_over import nothing_to_collect
from stream_server import StreamServer

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRpcClient,
    LoggingRpcClient,
    RetryingRpcClient,
    RetryRule,
    RetryRuleWithContent,
    RetryStrategy,
    capture_logs,
    rpc,
)

NOW = Backoff.without_delay()
SAFELY = retrying(RetryStrategy.failsafe(NOW), max_total_attempts=3)


async def test_operation_of_several_requests_is_made_again_as_a_whole(serving):
    """Its requests retry on their own; what they cannot mend, the operation does."""
    seen = []

    async def flaky(request: web.Request) -> web.StreamResponse:
        seen.append(request.path)
        if request.path == "/order" and seen.count("/order") < 2:
            return web.Response(status=503)
        if request.path == "/price":
            stale = seen.count("/price") < 2
            return web.json_response({"error": "stale"} if stale else {"price": 7})
        return web.json_response({"id": 1})

    server = await serving(flaky)
    is_stale = RetryRuleWithContent(
        on_content=lambda answer: "error" in (answer or {}), backoff=NOW
    )

    @rpc(RetryingRpcClient.new_decorator(is_stale, 3))
    async def operation(session):
        async with session.get("/order") as response:
            response.raise_for_status()
        async with session.get("/price") as response:
            return await response.json()

    async with connected(server.make_url("/"), SAFELY) as session:
        with capture_logs() as logs:
            answer = await operation(session)

    (log,) = logs
    assert {"price": 7} == answer
    assert ["/order", "/order", "/price", "/order", "/price"] == seen
    assert [[2, 1], [1, 1]] == [
        [call.total_attempts for call in child.calls] for child in log.children
    ]


@pytest.mark.slow
async def test_trees_of_many_operations_at_once_do_not_mix(serving):
    """200 of them, in one session."""

    async def flaky(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.001 * (len(request.path) % 5))
        return web.Response(text=request.path)

    server = await serving(flaky)
    failed = set()
    rule = RetryRule(exceptions=[KeyError], backoff=Backoff.random(0.0, 0.01))

    @rpc(RetryingRpcClient.new_decorator(rule), response_timeout=60.0)
    async def operation(session, number):
        async with asyncio.TaskGroup() as group:
            for part in "ab":
                group.create_task(fetch(session, number, part))
        if number % 3 == 0 and number not in failed:
            failed.add(number)
            raise KeyError(number)

    async def fetch(session, number, part):
        async with session.get(f"/{number}/{part}") as response:
            return await response.text()

    async with connected(server.make_url("/"), SAFELY) as session:
        with capture_logs() as logs:
            await asyncio.gather(*(operation(session, each) for each in range(200)))

    trees = [
        [[call.request_url.path for call in each.calls] for each in log.children]
        for log in logs
    ]
    assert [
        [[f"/{number}/a", f"/{number}/b"]] * (2 if number % 3 == 0 else 1)
        for number in range(200)
    ] == trees


async def test_client_of_another_protocol_is_retried(serve_lines):
    """A line of text for a line of text; the server hangs up the first two times."""
    breaker = CircuitBreaker()
    rule = RetryRule(exceptions=[ConnectionError], backoff=NOW)

    @rpc(
        CircuitBreakerRpcClient.new_decorator(breaker),
        LoggingRpcClient.new_decorator(),
        RetryingRpcClient.new_decorator(rule, attempt_timeout=5.0),
    )
    async def ask(question):
        reader, writer = await asyncio.open_connection(*serve_lines)
        with contextlib.closing(writer):
            writer.write(f"{question}\n".encode())
            answer = await reader.readline()
        if not answer:
            raise ConnectionResetError
        return answer.decode().strip()

    with capture_logs() as logs:
        answer = await ask("how are you")

    assert "HOW ARE YOU" == answer
    assert 3 == logs[0].total_attempts
    assert (1, 2) == (breaker.event_count.success, breaker.event_count.failure)


@pytest.fixture
async def serve_lines():
    """Answer lines in capitals, after two connections that are closed at once."""
    met = []

    async def handle(reader, writer):
        met.append(writer)
        if len(met) > 2:
            writer.write((await reader.readline()).upper())

    async with StreamServer(handle) as server:
        yield "127.0.0.1", server.port


@pytest.mark.parametrize("status", [200, 503])
async def test_operation_leaves_nothing_to_collect(serving, status):
    """Neither when it succeeds nor when it fails or is cut."""

    async def answering(request: web.Request) -> web.StreamResponse:
        if request.path == "/silent":
            await asyncio.sleep(60)
        return web.Response(status=status)

    server = await serving(answering)
    breaker = CircuitBreakerClient.new_decorator(CircuitBreaker())

    @rpc(RetryingRpcClient.new_decorator(RetryRule(on_timeout=True), 1, 0.5))
    async def operation(session, path):
        async with session.get(path) as response:
            response.raise_for_status()

    async def run(path):
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            await operation(session, path)

    async with connected(server.make_url("/"), breaker, SAFELY) as session:
        for path in ("/", "/silent"):
            await run(path)
            with nothing_to_collect():
                await run(path)
