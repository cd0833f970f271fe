"""Play calls in virtual time, to a script or to servers that answer by their names."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import logging
import random
import warnings
from dataclasses import dataclass, field

from chains import drawing
from story import errors_of_loop, told_of
from story_chains import chain, plain
from story_text import Witness, rounded, settled, told_error, told_log

from aioretry_smithy import RequestLog, capture_logs, request_options
from aioretry_smithy.testing import ScriptedTransport

SHOP = "http://shop.test/orders"


@dataclass(frozen=True)
class Arrival:
    """A call: when it is made and given up, and what is asked for."""

    at: float = 0.0
    cancelled: float | None = None
    cancels: int | None = None
    """The call that is given up in the very moment in which this one ends."""
    options: dict = field(default_factory=dict)
    method: str = "GET"


ONCE = (Arrival(),)


async def played(play, level=logging.DEBUG):
    """Let something play with a witness; tell what came of it, and when."""
    witness = Witness()
    with (
        witness.listening(level),
        capture_logs() as witness.logs,
        errors_of_loop(witness),
        drawing(),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        result = await told_of(witness, play(witness))
        await asyncio.sleep(0)
        state = [tell() for tell in witness.states]
    return {
        "result": settled(result),
        "seen": witness.seen,
        "state": settled(state),
        "logs": [told_log(log) for log in witness.logs],
        "times": [told_times(log, log.started) for log in witness.logs],
        "ended": rounded(asyncio.get_running_loop().time()),
        "warned": settled([(each.category, str(each.message)) for each in warned]),
    }


def told_times(log, start):
    """Tell when the parts of a call began, and how long they took and waited."""
    seconds = (log.started - start, log.duration, log.total_duration, log.delay)
    inside = (*log.children, *log.calls)
    told = [*map(rounded, seconds), log.delay_source]
    return [*told, [told_times(each, start) for each in inside]]


def scripted(*parts, answers, arrivals=ONCE):
    """Describe calls through a chain, inner parts first, to a script.

    After them one more shows what is free then.
    """

    async def play(witness):
        script = ScriptedTransport(itertools.chain(answers, itertools.repeat(200)))
        made = chain(plain(script), *parts)
        async with made.open(witness) as session:

            def call(arrival):
                return session.request(arrival.method, SHOP, **arrival.options)

            results = await crowd(witness, call, arrivals)
            one_more = asyncio.ensure_future(_read(session.get(f"{SHOP}/after")))
            after = await outcome_of(witness, one_more)
        sent = [
            (request.method, str(request.url), sorted(request.headers.items()))
            for request in script.requests
        ]
        return results, after, sent

    return lambda: played(play)


async def crowd(witness, call, arrivals):
    """Make calls as they arrive; tell what came of each, and when."""
    tasks = {}

    async def one(number, arrival):
        await asyncio.sleep(arrival.at)
        tasks[number] = task = asyncio.ensure_future(used(arrival))
        if arrival.cancelled is not None:
            loop.call_at(arrival.cancelled, task.cancel, "enough")
        return await outcome_of(witness, task), rounded(loop.time())

    async def used(arrival):
        result = await _read(call(arrival))
        if arrival.cancels is not None:
            tasks[arrival.cancels].cancel("enough")
        return result

    loop = asyncio.get_running_loop()
    return await asyncio.gather(*(one(*each) for each in enumerate(arrivals)))


async def outcome_of(witness, awaitable):
    """Tell how something ended, also where it was cancelled."""
    try:
        return await awaitable
    except asyncio.CancelledError as error:
        log = RequestLog.of(error, None)
        found = log if log is None else witness.logs.index(log)
        return "cancelled", told_error(error), found
    except Exception as error:
        log = RequestLog.of(error, None)
        found = log if log is None else witness.logs.index(log)
        return told_error(error), found


async def _read(call):
    async with call as response:
        return response.status, await response.read()


def after(seconds, answer=200):
    """Answer after a while."""

    async def respond(ctx, request):
        await asyncio.sleep(seconds)
        return answer

    return respond


BASE = "http://shop.test"


@dataclass(frozen=True)
class Ask(Arrival):
    """A call of one path, in a block of code; ``make`` in options makes its body."""

    path: str = "/orders"
    block: dict = field(default_factory=dict)
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
