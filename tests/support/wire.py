"""Sessions whose requests are recorded where aiohttp would send them."""

from __future__ import annotations

import asyncio
import math
from typing import NamedTuple

from aiohttp import ClientSession, ClientTimeout
from yarl import URL

from aioretry_smithy import HttpRequest, SessionBuilder, client_decorator, new_response


class Call(NamedTuple):
    """One call of ``ClientSession._request``."""

    at: float
    method: str
    url: object
    options: dict


class Recorder:
    """Stands in for ``ClientSession._request`` and answers from a list."""

    def __init__(self):
        self.calls = []
        self.answers = []
        self.takes = 0.0

    async def __call__(self, session, method, url, **options):
        loop = asyncio.get_running_loop()
        self.calls.append(Call(loop.time(), method, url, options))
        await asyncio.sleep(self.takes)
        answer = self.answers.pop(0) if self.answers else 200
        if isinstance(answer, BaseException):
            raise answer
        return new_response(HttpRequest(method, URL(url)), answer)

    @property
    def options(self):
        return [call.options for call in self.calls]

    @property
    def timeouts(self):
        return [options.get("timeout") for options in self.options]


def sent_to(answer, monkeypatch):
    """Call *answer* in place of ``ClientSession._request``; return it."""

    async def _request(session, method, url, **options):
        return await answer(session, method, url, **options)

    monkeypatch.setattr(ClientSession, "_request", _request)
    return answer


def pausing(seconds):
    """Make a decorator that waits before it sends."""

    @client_decorator
    async def pause(delegate, ctx, request):
        await asyncio.sleep(seconds)
        return await delegate.execute(ctx, request)

    return pause


def changing(change):
    """Make a decorator that changes the context, or the request by returning one."""

    @client_decorator
    async def decorator(delegate, ctx, request):
        return await delegate.execute(ctx, change(ctx, request) or request)

    return decorator


async def get(*decorators, session_timeout=None, **options):
    """Make one call that ends at the recorder."""
    arguments = {} if session_timeout is None else {"timeout": session_timeout}
    builder = SessionBuilder("http://h", **arguments)
    for decorator in decorators:
        builder.decorator(decorator)
    async with builder.build() as session:
        return await session.request("GET", "/", **options)


def exact(total, **limits):
    """Return a timeout as attempts get it, which aiohttp does not round up."""
    return ClientTimeout(total=total, ceil_threshold=math.inf, **limits)
