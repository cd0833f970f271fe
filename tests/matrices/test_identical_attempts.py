"""Attempts are identical: what changes after the first was sent changes nothing."""

import asyncio
from collections import UserDict, UserList
from http.cookies import SimpleCookie
from types import MappingProxyType

import aiohttp
import pytest
from aiohttp import web
from chains import connected, retrying
from multidict import CIMultiDict, MultiDict

from aioretry_smithy import DecoratingClient, client_decorator

COUNT = "armeria-retry-count"
RETRYING = retrying(0.0, max_total_attempts=3)


@pytest.fixture
async def server(serving):
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

    server = await serving(answer)
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


class Own(dict):
    """A dictionary of a user's own."""


def multipart(*values):
    writer = aiohttp.MultipartWriter()
    for value in values:
        writer.append(value)
    return writer


def fields(*values):
    data = aiohttp.FormData()
    for value in values:
        data.add_field("f", value, filename="f.txt")
    return data


def changed(value):
    value[:] = b"456"


def of_bytes(make):
    """Return a body that is made of a buffer, and a function that changes this one."""

    def arguments():
        value = bytearray(b"123")
        return {"data": make(value)}, lambda: changed(value)

    return arguments


def of_list(make):
    """Return arguments that are made of a list, and a function that changes this."""

    def arguments():
        value = ["1"]
        return make(value), lambda: value.append("2")

    return arguments


def of_pairs(make):
    """Return arguments made of a dictionary, and a function that changes this."""

    def arguments():
        value = {"a": "1"}
        return make(value), lambda: value.update(a="2")

    return arguments


def with_morsel():
    cookies = SimpleCookie({"a": "1"})
    return {"cookies": [("a", cookies["a"])]}, lambda: cookies["a"].set("a", "2", "2")


def with_parts(make):
    def arguments():
        inner = multipart("1")
        return {"data": make(inner)}, lambda: inner.append("2")

    return arguments


def with_part_headers():
    writer = multipart("1")
    (part,) = (part for part, _, _ in writer)
    return {"data": writer}, lambda: part.headers.update(a="1")


def with_field():
    form = fields(b"1")
    return {"data": form}, lambda: (form.add_field("g", "2"), form())


HANDS_ON = {
    "field": of_bytes(fields),
    "value of a dict": of_bytes(lambda value: {"f": value}),
    "value of an own dict": of_bytes(lambda value: Own(f=value)),
    "value of a pair": of_bytes(lambda value: [("f", value)]),
    "view": of_bytes(memoryview),
    "read-only view": of_bytes(lambda value: memoryview(value).toreadonly()),
    "payload": of_bytes(aiohttp.BytesPayload),
    "part": of_bytes(multipart),
    "part of a part": of_bytes(lambda value: multipart("1", multipart(value))),
    "parts": with_parts(lambda inner: inner),
    "inner parts": with_parts(lambda inner: multipart("0", inner)),
    "headers of a part": with_part_headers,
    "fields": with_field,
    "list in a form": of_list(lambda value: {"data": aiohttp.FormData({"a": value})}),
    "list in a dict": of_list(lambda value: {"data": {"a": value}}),
    "list in a UserDict": of_list(lambda value: {"params": UserDict(a=value)}),
    "list in a MultiDict": of_list(lambda value: {"params": MultiDict(a=value)}),
    "pairs": of_pairs(lambda value: {"params": UserList(value.items())}),
    "UserDict": of_pairs(lambda value: {"params": UserDict(value)}),
    "proxy of headers": of_pairs(lambda value: {"headers": MappingProxyType(value)}),
    "items": of_pairs(lambda value: {"headers": value.items()}),
    "morsel": with_morsel,
}


@pytest.mark.filterwarnings("ignore:In v4, passing bytes")
@pytest.mark.parametrize("make", HANDS_ON.values(), ids=HANDS_ON)
@every_way
async def test_what_is_inside_of_an_argument_changes_nothing(server, make, decorator):
    """Containers, buffers and parts are fixed when they are first sent."""
    arguments, change = make()
    expected, _ = make()
    async with aiohttp.ClientSession(server.make_url("/")) as bare:
        await bare.post("/", **expected)
    (path, _, body) = server.heard.pop()
    server.first.clear()
    session = connected(server.make_url("/"), decorator)
    async with session:
        call = asyncio.create_task(session.post("/", **arguments))
        await server.first.wait()
        change()
        response = await call

    assert 200 == response.status
    assert same(server.heard) == server.heard
    assert (path, len(body)) == (server.heard[0][0], len(server.heard[0][2]))


@pytest.mark.parametrize("kind", [name for name in HANDS_ON if name != "morsel"])
@pytest.mark.filterwarnings("ignore:In v4, passing bytes")
async def test_what_changes_while_aiohttp_connects_changes_nothing(server, kind):
    """The first attempt sends what the next ones send."""
    arguments, change = HANDS_ON[kind]()
    before, _ = HANDS_ON[kind]()
    connecting = aiohttp.TraceConfig()

    async def on_create_start(*_):
        change()

    connecting.on_connection_create_start.append(on_create_start)
    async with (
        aiohttp.ClientSession(server.make_url("/")) as bare,
        connected(server.make_url("/"), RETRYING, trace_configs=[connecting]) as it,
    ):
        await it.post("/", **arguments)
        await bare.post("/", **before)

    first, second, third, expected = server.heard

    assert first == second == third
    assert len(expected[2]) == len(first[2])


@pytest.mark.parametrize("seconds", [0.0, 0.02])
@every_argument
async def test_what_changes_while_a_decorator_waits_changes_nothing(
    server, make, seconds
):
    """All attempts send the same where a queue holds up the first one too."""
    queued = asyncio.Event()

    @client_decorator
    async def queueing(delegate, ctx, request):
        queued.set()
        await asyncio.sleep(seconds)
        return await delegate.execute(ctx, request)

    arguments = make()
    session = connected(server.make_url("/"), RETRYING, queueing)
    async with session:
        call = asyncio.create_task(session.post("/", **arguments))
        await queued.wait()
        change(next(iter(arguments.values())))
        await call

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
