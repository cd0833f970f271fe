"""The least that decorators with a context and a log can cost: they do nothing."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from calling import Call, getting


class Request:
    __slots__ = ("arguments", "method", "target")

    def __init__(self, method, target, arguments):
        self.method = method
        self.target = target
        self.arguments = arguments


class Log:
    """As many attributes as a real one has."""

    __slots__ = (
        *"abcdefghijklmnopqrst",
        "children",
        "loop",
        "parent",
        "request",
        "start",
    )

    def __init__(self, request, loop, parent):
        self.request = request
        self.loop = loop
        self.parent = parent
        self.start = loop.time()
        self.a = self.b = self.c = self.d = self.e = self.f = self.g = self.h = None
        self.i = self.j = self.k = self.l = self.m = self.n = self.o = self.p = None
        self.q = self.r = self.s = self.t = self.children = None


class Context:
    __slots__ = ("attributes", "log", "options", "parent", "request")

    def __init__(self, request, log, parent):
        self.request = request
        self.log = log
        self.parent = parent
        self.attributes = self.options = None


class Leaf:
    def __init__(self, session):
        self.session = session

    async def execute(self, ctx, request):
        session = self.session()
        return await type(session)._request(
            session, request.method, request.target, **request.arguments
        )


class Layer:
    def __init__(self, delegate):
        self.delegate = delegate

    async def execute(self, ctx, request):
        return await self.delegate.execute(ctx, request)


class AttemptLayer(Layer):
    """Has a context and a log for the one attempt."""

    async def execute(self, ctx, request):
        log = Log(request, ctx.log.loop, ctx.log)
        return await self.delegate.execute(Context(request, log, ctx), request)


@asynccontextmanager
async def thin() -> AsyncIterator[Call]:
    """Send what goes through three layers, and do nothing else."""
    async with aiohttp.ClientSession() as session:
        reference = weakref.ref(session)
        client = Layer(AttemptLayer(Layer(Leaf(reference))))

        async def call(session, method, target, arguments):
            request = Request(method.upper(), target, arguments)
            log = Log(request, asyncio.get_running_loop(), None)
            return await client.execute(Context(request, log, None), request)

        def _request(method, str_or_url, **options):
            return call(reference(), method, str_or_url, options)

        vars(session)["_request"] = _request
        yield getting(session)
