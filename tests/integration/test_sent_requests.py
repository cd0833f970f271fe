"""What the log shows of requests that a server got, or should have got."""

from __future__ import annotations

import gc
import weakref

import pytest
from chains import NOW, SAFELY, connected, log_of, retrying
from fault_server import End, FaultServer, answer, cut

from aioretry_smithy import LoggingClient, RetryStrategy, client_decorator
from aioretry_smithy.smithy import StandardRetryStrategy, sdk_headers

CUT = cut(end=End.CLOSE)


@client_decorator
async def deeper(delegate, ctx, request):
    """Ask for something else, with another method and a header."""
    changed = request.replace(method="PUT", url=request.url / "deeper")
    return await delegate.execute(ctx, changed.with_header("A", "1"))


def heads(server):
    """Return the method and the target of each request that came."""
    return [(each.method, each.target) for each in server.requests]


@pytest.mark.parametrize("faults", [[CUT, CUT, answer()], [answer(503)] * 2])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_attempts_show_what_the_server_got(faults, method):
    """Answered or not."""
    retries = retrying(RetryStrategy.failsafe(NOW), max_total_attempts=3)
    async with FaultServer(faults) as server:
        log = await log_of(connected(server.url, deeper, retries), "/", method=method)

        assert heads(server) == [
            (each.request_method, each.request_url.raw_path) for each in log.children
        ]
    assert {"1"} == {each.request_headers["A"] for each in log.children}
    assert (method, "/") == (log.request_method, log.request_url.raw_path)
    assert "1" == log.request_headers["A"]


async def test_failed_first_attempt_has_the_headers_of_ours():
    """Those that a decorator of ours has added, though no answer tells them."""
    strategy = StandardRetryStrategy(max_attempts=2)
    async with FaultServer([cut(end=End.CLOSE), answer()]) as server:
        client = connected(server.url, sdk_headers, retrying(strategy))
        log = await log_of(client, "/")
        got = [each.header("amz-sdk-request").decode() for each in server.requests]

    assert ["attempt=1", "attempt=2"] == [each.partition(";")[0] for each in got]
    assert got == [
        each.request_headers.get("amz-sdk-request", "") for each in log.children
    ]


@pytest.mark.parametrize("decorators", [[], [retrying(SAFELY)]], ids=["once", "retry"])
async def test_changed_request_leaves_no_body(decorators):
    """Neither the log nor anything else keeps what a decorator has sent."""
    bodies = []

    class Body(bytearray):
        pass

    @client_decorator
    async def fill(delegate, ctx, request):
        body = Body(b"orders")
        bodies.append(weakref.ref(body))
        changed = request.replace(method="PUT", data=body)
        return await delegate.execute(ctx, changed)

    async with FaultServer([answer(200, b"fine")]) as server:
        log = await log_of(
            connected(server.url, fill, *decorators, LoggingClient.new_decorator()), "/"
        )
    gc.collect()

    assert [None] == [body() for body in bodies]
    assert "PUT" in log.render()
