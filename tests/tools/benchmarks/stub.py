"""aiohttp without a network: what a call costs before anything is sent."""

import asyncio
from contextlib import contextmanager
from itertools import cycle
from types import SimpleNamespace

from aiohttp import ClientSession
from aiohttp.client_middlewares import build_client_middlewares
from yarl import URL

from aioretry_smithy import HttpRequest, new_response

ADDRESS = "http://stub.example/ok"


class Gate:
    """Holds calls up until it is opened, and says when so many are waiting.

    Args:
        size: How many.
    """

    def __init__(self, size):
        self.full = asyncio.Event()
        self._open = asyncio.Event()
        self._missing = size

    async def wait(self):
        self._missing -= 1
        if self._missing == 0:
            self.full.set()
        await self._open.wait()

    def open(self):
        self._open.set()


@contextmanager
def stubbed(gate=None, statuses=(200,)):
    """Put a coroutine that answers at once in the place of ``ClientSession._request``.

    There is one response for all calls. To make one takes longer than most chains, and
    that much more of the same on both sides would hide what the chain costs. A chain
    sees a response whose body has come with its headers, as small ones do.

    Args:
        gate: Where calls wait for their answer.
        statuses: What requests are answered with in turn, again and again. Calls at
            the same time would take each other's.
    """
    request = HttpRequest("GET", ADDRESS)
    answers = cycle([new_response(request, each, body=b"ok") for each in statuses])
    # All that our middlewares look at.
    sent = SimpleNamespace(method="GET", url=URL(ADDRESS))

    async def answer(request):
        if gate is not None:
            await gate.wait()
        return next(answers)

    async def _request(session, method, str_or_url, **options):
        # What aiohttp does with middlewares is a part of what they cost.
        if session._middlewares:
            return await build_client_middlewares(answer, session._middlewares)(sent)
        if gate is not None:
            await gate.wait()
        return next(answers)

    original = ClientSession._request
    ClientSession._request = _request
    try:
        yield
    finally:
        ClientSession._request = original
