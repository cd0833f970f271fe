"""Sessions as other projects make them, which aiohttp takes and so do we."""

import json
from collections import UserDict
from contextlib import asynccontextmanager
from types import MappingProxyType

import aiohttp
import pytest
from chains import SAFELY, retrying
from fault_server import FaultServer, answer
from multidict import CIMultiDict, CIMultiDictProxy, MultiDict

from aioretry_smithy import (
    LoggingClient,
    RequestLog,
    client_decorator,
    decorate,
    undecorate,
)

AGENT = {"User-Agent": "home/2025.12"}
KINDS = [
    MappingProxyType,
    dict,
    UserDict,
    MultiDict,
    CIMultiDict,
    lambda headers: CIMultiDictProxy(CIMultiDict(headers)),
    lambda headers: [*headers.items()],
]
NAMES = ["read-only", "dict", "UserDict", "MultiDict", "own", "own, read-only", "pairs"]
CHAINS = [[], [LoggingClient.new_decorator()], [retrying(SAFELY)]]

of_each_kind = pytest.mark.parametrize("kind", KINDS, ids=NAMES)
through_each_chain = pytest.mark.parametrize(
    "decorators", CHAINS, ids=["nothing", "log", "retry"]
)


class HomeResponse(aiohttp.ClientResponse):
    """A response with a reader of JSON of its own."""

    async def json(self, *arguments, loads=json.loads, **options):
        """Read the body as JSON."""
        return await super().json(*arguments, loads=loads, **options)


def refuse_to_close():
    raise AssertionError


@asynccontextmanager
async def home_session(headers=MappingProxyType(AGENT)):
    """Make a session as Home Assistant's helper does: shared, and hard to misuse."""
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(),
        json_serialize=json.dumps,
        response_class=HomeResponse,
    )
    vars(session)["_default_headers"] = headers
    vars(session)["close"] = refuse_to_close
    try:
        yield session
    finally:
        await aiohttp.ClientSession.close(session)


def agents(server):
    return [each.header("User-Agent").decode() for each in server.requests]


@of_each_kind
@through_each_chain
async def test_default_headers_may_be_any_mapping(kind, decorators):
    """They go out and are in the log, as they do from a session without a chain."""
    async with FaultServer() as server, home_session(kind(AGENT)) as session:
        (await session.get(server.url)).close()
        decorate(session, *decorators)
        async with session.get(server.url, headers={"A": "1"}) as response:
            log = RequestLog.of(response)
        undecorate(session)
        (await session.get(server.url)).close()

        assert [AGENT["User-Agent"]] * 3 == agents(server)
    assert isinstance(response, HomeResponse)
    assert (AGENT["User-Agent"], "1") == (
        log.request_headers["user-agent"],
        log.request_headers["a"],
    )


@of_each_kind
async def test_default_headers_may_change_between_attempts(kind):
    """The log of each attempt has those that it was sent with."""

    @client_decorator
    async def renew(delegate, ctx, request):
        if ctx.attempt == 2:
            vars(session)["_default_headers"] = kind({"user-agent": "renewed"})
        return await delegate.execute(ctx, request)

    fails_first = FaultServer([answer(503), answer()])
    async with fails_first as server, home_session() as session:
        decorate(session, renew, retrying(SAFELY))
        async with session.get(server.url) as response:
            log = RequestLog.of(response)

        sent = [AGENT["User-Agent"], "renewed"]
        assert sent == agents(server)
        assert sent == [each.request_headers["User-Agent"] for each in log.children]


@of_each_kind
@through_each_chain
async def test_default_headers_may_be_set_later(kind, decorators):
    """The calls that begin from then on have them, in their logs too."""
    async with FaultServer() as server, home_session(CIMultiDict()) as session:
        decorate(session, *decorators)
        (await session.get(server.url)).close()
        for name in ("a", "b"):
            vars(session)["_default_headers"] = kind({"user-agent": name})
            (await session.get(server.url)).close()
        vars(session)["_default_headers"] = CIMultiDict(AGENT)
        (await session.get(server.url)).close()

        assert ["a", "b", AGENT["User-Agent"]] == agents(server)[1:]
