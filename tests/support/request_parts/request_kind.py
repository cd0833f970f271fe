"""Kinds of requests, and the parts that tables of them are made of."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import body_kinds
from request_senders import Call, entered
from wire_server import Wire, WireServer


@dataclass
class Scene:
    """Things that a request may be made of."""

    wire: Wire
    server: WireServer
    tls_server: WireServer
    trust: ssl.SSLContext
    content: body_kinds.Content
    seen: list[Any] = field(default_factory=list)
    """Notes of the request's own callbacks."""


class Fresh:
    """Stands for a value that is made anew each time, given the scene."""

    def __init__(self, make: Callable[[Scene], Any]) -> None:
        self.make = make


def made(value: Any, scene: Scene) -> Any:
    """Return a value, made now if it is to be fresh."""
    return value.make(scene) if isinstance(value, Fresh) else value


@dataclass(frozen=True)
class Kind:
    """One kind of request: of which session, what, and how it is sent and read."""

    method: Any
    url: Any
    session: dict[str, Any]
    options: dict[str, Any]
    send: Callable[[Call], Awaitable[Any]]
    again: bool
    """Whether it is sent again after a 503."""


def kind(
    method: Any = "GET",
    path: Any = "/",
    *,
    url: Any = None,
    session: dict[str, Any] | None = None,
    send: Callable[[Call], Awaitable[Any]] = entered,
    again: bool = True,
    **options: Any,
) -> Kind:
    """Describe a request to a path at the server, or to a URL of its own."""
    if url is None:
        url = Fresh(lambda scene: str(scene.server.url) + path)
    return Kind(method, url, session or {}, options, send, again)


class Text(str):
    """A string of a class of its own."""

    __slots__ = ()


async def chunks(*parts: bytes) -> Any:
    """Yield parts of a body."""
    for part in parts:
        yield part


def fresh(make: Callable[[], Any]) -> Fresh:
    """Stand for a value that is made anew each time."""
    return Fresh(lambda scene: make())


get = functools.partial(kind, "GET")
post = functools.partial(kind, "POST")


def cookie_jar(**options: Any) -> Fresh:
    """Make a jar that takes cookies from IP addresses."""
    return fresh(lambda: aiohttp.CookieJar(unsafe=True, **options))


BASE = {"base_url": Fresh(lambda scene: scene.server.url / "api/")}
JAR = {"cookie_jar": cookie_jar()}
PROXY = Fresh(lambda scene: scene.server.url)
TLS_URL = Fresh(lambda scene: scene.tls_server.url)
TRUST = Fresh(lambda scene: scene.trust)
ELSEWHERE = "http://nowhere.test/path?q=1"
FILE = Fresh(lambda scene: scene.content.file())
AUTH = fresh(lambda: aiohttp.BasicAuth("user", "pä55", "utf-8"))
