"""What the log shows of requests that a server got, or should have got."""

import gc
import weakref

import pytest
from chains import SAFELY, connected, log_of, retrying
from fault_server import FaultServer, answer

from aioretry_smithy import LoggingClient, client_decorator


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
