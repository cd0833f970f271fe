"""Endpoints that are asked for their health, and their load once all is closed."""

import socket
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
from aiohttp import web
from chains import pass_on
from fault_server import need_address
from group_servers import Told
from until import until

from aioretry_smithy import (
    Endpoint,
    EndpointGroup,
    HealthCheckedEndpointGroup,
    SessionBuilder,
    decorate,
    undecorate,
)

ADDRESSES = "127.0.0.1", "127.0.0.2", "127.0.0.3"


class Replica:
    """A server that says how it is, and notes what it saw."""

    def __init__(self):
        self.status = 200
        self.seen = []

    async def answer(self, request):
        self.seen.append((request.path, request.headers["Host"]))
        if request.path == "/v1/healthz":
            return web.Response(status=self.status, headers={"Location": "/v1/well"})
        return web.Response()

    def asked(self, path):
        return [seen for seen, _ in self.seen if seen == path]


@asynccontextmanager
async def replicas():
    """Serve at three addresses, on one port."""
    async with AsyncExitStack() as stack:
        found, port = {}, 0
        for address in ADDRESSES:
            need_address(address)
            replica = found[address] = Replica()
            server = web.Server(replica.answer)
            listening = socket.create_server((address, port))
            port = listening.getsockname()[1]
            runner = web.ServerRunner(server)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.SockSite(runner, listening).start()
        yield found, port


def named(port, **settings):
    """Make a group of addresses behind a name that nobody can look up."""
    url = f"http://orders.invalid:{port}/v1"
    return EndpointGroup.of(
        *(Endpoint(url, address=address) for address in ADDRESSES), **settings
    )


async def test_each_address_is_asked_under_the_name_of_the_service():
    """A redirect is no good answer, and is not followed."""
    told = Told()
    async with replicas() as (found, port):
        first, second, third = found.values()
        second.status, third.status = 503, 302
        group = HealthCheckedEndpointGroup(
            named(port, listener=told), "/healthz", interval=0.05
        )
        async with group, SessionBuilder(group).build() as session:
            for _ in range(6):
                async with session.get("/orders") as response:
                    assert 200 == response.status
            second.status = 204
            await until(lambda: ("returned", f"127.0.0.2:{port}") in told.events)

    host = f"orders.invalid:{port}"
    assert {host} == {name for each in found.values() for _, name in each.seen}
    assert 6 == len(first.asked("/v1/orders"))
    assert [] == second.asked("/v1/orders") + third.asked("/v1/orders")
    assert [] == third.asked("/v1/well")


async def test_session_of_the_callers_own_asks_past_its_decorators():
    """With its middlewares and headers."""
    seen, hops = [], []

    async def note(request, handler):
        hops.append(request.headers["X-Team"])
        return await handler(request)

    def counting(delegate):
        seen.append(delegate)
        return pass_on(delegate)

    headers = {"X-Team": "orders"}
    async with (
        replicas() as (_, port),
        aiohttp.ClientSession(headers=headers, middlewares=[note]) as own,
    ):
        decorate(own, counting)
        seen.clear()
        async with HealthCheckedEndpointGroup(
            named(port), "/healthz", session=own
        ) as group:
            await group.when_ready()
            assert [None] * 3 == [each.reason for each in group.states.values()]
        undecorate(own)

    assert [] == seen
    assert ["orders"] * 3 == hops


async def test_endpoint_that_stops_is_left_alone_before_anybody_calls_it():
    """A refused connection of a check is enough."""
    told = Told()
    async with replicas() as (_, port):
        group = HealthCheckedEndpointGroup(
            named(port, listener=told), "/healthz", interval=0.05
        )
        async with group:
            await group.when_ready()
            assert 3 == len(group.states)
    # The servers are gone.
    async with group:
        ready = await group.when_ready()
        assert {"unhealthy"} == {each.reason for each in group.states.values()}

    assert 3 == len(ready)
    assert 3 == sum(event == "ejected" for event, *_ in told.events)
