"""Attempts are identical: what changes after the first was sent changes nothing."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections import UserDict
from http.cookies import SimpleCookie
from types import MappingProxyType, MethodType

import aiohttp
import pytest
from aiohttp import web
from chains import connected, retrying
from multidict import CIMultiDict, MultiDict, MultiDictProxy

from aioretry_smithy import DecoratingClient, client_decorator, decorate, undecorate

COUNT = "armeria-retry-count"
RETRYING = retrying(0.0, max_total_attempts=3)


@pytest.fixture
async def server(aiohttp_server):
    """A server that keeps what it got, and answers 503, 503, 200, 200, ..."""
    heard = []

    async def answer(request):
        headers = sorted(
            (name, value) for name, value in request.headers.items() if name != COUNT
        )
        heard.append((request.path_qs, headers, await request.read()))
        server.first.set()
        # The caller's other tasks get their turn while the attempt is under way.
        await asyncio.sleep(0.01)
        return web.Response(status=200 if len(heard) > 2 else 503)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    server = await aiohttp_server(app)
    server.heard, server.first = heard, asyncio.Event()
    return server


class TwiceClient(DecoratingClient):
    """Sends everything three times, as a refresh of credentials may."""

    async def execute(self, ctx, request):
        for _ in range(2):
            (await self.delegate.execute(ctx, request)).close()
        return await self.delegate.execute(ctx, request)


def form():
    data = aiohttp.FormData()
    data.add_field("a", "1")
    return data


def cookie():
    return SimpleCookie({"a": "1"})


def change(value):
    """Change an object as a caller may, when it is out of sight."""
    match value:
        case aiohttp.FormData():
            value.add_field("b", "2")
        case bytearray():
            value[:] = b"changed"
        case list() if value and isinstance(value[0], list):
            value[0][1] = "changed"
        case list() | set():
            value.clear()
        case _:
            value["a"] = "changed"


CHANGED = {
    "json": lambda: {"json": {"a": 1}},
    "json list": lambda: {"json": ["a", 1]},
    "dict": lambda: {"data": {"a": "1"}},
    "pairs": lambda: {"data": [["a", "1"]]},
    "multidict": lambda: {"data": MultiDict(a="1")},
    "form": lambda: {"data": form()},
    "bytearray": lambda: {"data": bytearray(b"123")},
    "headers": lambda: {"headers": {"a": "1"}},
    "header pairs": lambda: {"headers": [["a", "1"]]},
    "header multidict": lambda: {"headers": CIMultiDict(a="1")},
    "params": lambda: {"params": {"a": "1"}},
    "param multidict": lambda: {"params": MultiDict(a="1")},
    "cookies": lambda: {"cookies": {"a": "1"}},
    "simple cookie": lambda: {"cookies": cookie()},
    "own mapping": lambda: {"headers": UserDict(a="1")},
    "skipped": lambda: {"skip_auto_headers": {"User-Agent"}},
}
every_argument = pytest.mark.parametrize("make", CHANGED.values(), ids=CHANGED)
every_way = pytest.mark.parametrize("decorator", [RETRYING, TwiceClient])


def same(heard):
    return [heard[0]] * 3


@every_argument
@every_way
async def test_what_the_caller_changes_meanwhile_changes_nothing(
    server, make, decorator
):
    """Another task changes the object while the first attempt is under way."""
    arguments = make()
    async with connected(server.make_url("/"), decorator) as it:
        call = asyncio.create_task(it.request("POST", "/", **arguments))
        await server.first.wait()
        change(next(iter(arguments.values())))
        response = await call

    assert 200 == response.status
    assert same(server.heard) == server.heard


async def test_what_a_decorator_changes_meanwhile_changes_nothing(server):
    """A decorator's hands may be on what it put in the place of the caller's."""
    mine = {"a": "1"}

    @client_decorator
    async def meddling(delegate, ctx, request):
        request.options["params"]["a"] = "changed"
        response = await delegate.execute(ctx, request)
        change(mine)
        return response

    @client_decorator
    async def replacing(delegate, ctx, request):
        request = request.replace(
            headers=mine, params={"a": "1"}, data={"a": mine["a"]}
        )
        return await delegate.execute(ctx, request)

    async with connected(
        server.make_url("/"), meddling, RETRYING, replacing
    ) as session:
        await session.post("/")

    assert same(server.heard) == server.heard
    assert ("a", "1") in server.heard[0][1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: {"cookies": iter([("a", "1")])},
        lambda: {"skip_auto_headers": iter(["User-Agent"])},
        lambda: {"headers": iter([("a", "1")])},
        lambda: {"headers": MappingProxyType({"a": "1"})},
        lambda: {"params": MultiDictProxy(MultiDict(a="1"))},
        lambda: {"params": {"a": ["1", "2"]}},
        lambda: {"params": (["a", "1"], ["a", "2"])},
        lambda: {"data": memoryview(b"123")},
        lambda: {"data": memoryview(bytearray(b"123"))},
        lambda: {"data": type("Own", (dict,), {})(a="1")},
    ],
)
@every_way
async def test_each_attempt_has_all_of_it(server, make, decorator):
    """Bodies that can be read once, and rare containers, arrive whole each time."""
    async with (
        aiohttp.ClientSession(server.make_url("/")) as bare,
        connected(server.make_url("/"), decorator) as session,
    ):
        await session.post("/", **make())
        await bare.post("/", **make())

    assert [server.heard[3]] * 3 == server.heard[:3]


@pytest.mark.parametrize("name", ["json_serialize", "json_serialize_bytes"])
async def test_json_is_serialized_once_a_call(server, name):
    """A serializer that counts, or stamps, is asked once; the attempts are alike."""
    if name == "json_serialize_bytes" and not hasattr(
        aiohttp.payload, "JsonBytesPayload"
    ):
        pytest.skip("new in aiohttp 3.14")
    asked = []

    def dumps(value):
        asked.append(value)
        text = json.dumps([len(asked), value])
        return text.encode() if name.endswith("bytes") else text

    session = connected(server.make_url("/"), RETRYING, **{name: dumps})
    async with session:
        await session.post("/", json={"a": 1})
        await session.post("/", json={"a": 1})

    assert 2 == len(asked)
    assert [b'[1, {"a": 1}]'] * 3 + [b'[2, {"a": 1}]'] == [
        body for _, _, body in server.heard
    ]


@pytest.mark.parametrize("by", ["subclass", "function", "patch"])
async def test_json_is_serialized_once_where_others_are_sent_meanwhile(
    server, by, monkeypatch
):
    """A method before aiohttp's may wait, such as for a token."""
    send = aiohttp.ClientSession._request
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):

        class Waiting(aiohttp.ClientSession):
            async def _request(self, *arguments, **options):
                await asyncio.sleep(0.01)
                return await send(self, *arguments, **options)

    asked = []

    def dumps(value):
        asked.append(value)
        return json.dumps(value)

    kind = Waiting if by == "subclass" else aiohttp.ClientSession
    async with kind(server.make_url("/"), json_serialize=dumps) as session:
        if by == "function":
            session._request = MethodType(Waiting._request, session)
        decorate(session, RETRYING)
        if by == "patch":
            monkeypatch.setattr(aiohttp.ClientSession, "_request", Waiting._request)
        await asyncio.gather(*(session.put("/", json=text) for text in "ab"))

    assert ["a", "b"] == sorted(asked)
    assert [b'"a"', b'"a"', b'"b"', b'"b"'] == sorted(each[2] for each in server.heard)


async def test_the_serializer_is_given_back():
    """An undecorated session is as it was, and a later serializer stays."""
    async with aiohttp.ClientSession(json_serialize=repr) as session:
        undecorate(decorate(session))
        given_back = session.json_serialize
        decorate(session)
        session._json_serialize = str
        undecorate(session)

        assert repr is given_back
        assert str is session.json_serialize
