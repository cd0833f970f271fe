"""Play calls to a service of one server or several, which answer by their names."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import random
from dataclasses import dataclass, field
from typing import Any

from story_chains import chain, plain
from story_script import Arrival, crowd, outcome_of, played
from story_text import rounded, settled

from aioretry_smithy import request_options
from aioretry_smithy.testing import ScriptedTransport

BASE = "http://shop.test"


@dataclass(frozen=True)
class Ask(Arrival):
    """A call of one path, in a block of code; ``make`` in options makes its body."""

    path: str = "/orders"
    block: dict[str, Any] = field(default_factory=dict)
    """The options of the block."""


class Servers:
    """Answer by the name of the server, with 200 where nothing is said.

    Each has a list of answers, of which the last one stays.
    """

    def __init__(self, answers):
        self.answers = {name: [*each] for name, each in answers.items()}
        self.transport = ScriptedTransport(itertools.repeat(self._answer))
        self.asked = []

    async def _answer(self, ctx, request):
        url = request.full_url()
        now = rounded(asyncio.get_running_loop().time())
        where = None if ctx.endpoint is None else str(ctx.endpoint)
        headers = settled(sorted(request.headers.items()))
        self.asked.append((now, where, f"{request.method} {url}", headers))
        left = self.answers.get(url.raw_host.partition(".")[0]) or [200]
        answer = left.pop(0) if left[1:] else left[0]
        if callable(answer) and not inspect.isclass(answer):
            answer = answer(ctx, request)
        return await answer if inspect.iscoroutine(answer) else answer


class Used:
    """A response that is read in a way of its own."""

    def __init__(self, witness, response, way):
        self.status = response.status
        self._arguments, self._way = (witness, response), way

    async def read(self):
        """Return what came of it."""
        return await self._way(*self._arguments)


def served(*parts, answers=(200,), asks=(Ask(),), base=None, way=None, **settings):
    """Describe calls through a chain, inner parts first, to servers.

    Args:
        parts: What makes the decorators.
        answers: The answers of each server by its name, or of the only one; or what
            makes them, given a witness.
        asks: The calls.
        base: Makes the group, given a witness and the stack of what is open.
        way: How responses are read, given a witness and one; by default whole.
        settings: Those of the session.
    """

    async def play(witness):
        made = answers(witness) if callable(answers) else answers
        servers = Servers(made if isinstance(made, dict) else {"shop": made})
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(drawn_alike())
            where = BASE if base is None else await base(witness, stack)
            built = chain(plain(servers.transport), *parts)
            session = built.open(witness, base_url=where, **settings)
            await stack.enter_async_context(session)

            @contextlib.asynccontextmanager
            async def call(ask):
                async with called(session, ask) as response:
                    yield Used(witness, response, way) if way else response

            results = await crowd(witness, call, asks)
            one_more = _read(called(session, Ask(path="/after")))
            after = await outcome_of(witness, asyncio.ensure_future(one_more))
        return results, after, servers.asked

    return lambda: played(play)


@contextlib.contextmanager
def drawn_alike():
    """Let what is chosen by chance be the same each time."""
    before = random.getstate()
    random.seed(7)
    try:
        yield
    finally:
        random.setstate(before)


@contextlib.asynccontextmanager
async def called(session, ask):
    """Make a call as it is asked for, in a block of its own."""
    options = {**ask.options}
    if make := options.pop("make", None):
        options["data"] = make()
    with request_options(**ask.block):
        async with session.request(ask.method, ask.path, **options) as response:
            yield response


async def _read(call):
    async with call as response:
        return response.status, await response.read()
