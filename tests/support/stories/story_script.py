"""Play calls in virtual time, where a script answers in place of a server."""

from __future__ import annotations

import asyncio
import itertools
import logging
import warnings
from dataclasses import dataclass, field
from typing import Any

from chains import drawing
from story import errors_of_loop, told_of
from story_chains import chain, plain
from story_log import told_error, told_log
from story_text import rounded, settled
from story_witness import Witness

from aioretry_smithy import RequestLog, capture_logs
from aioretry_smithy.testing import ScriptedTransport

SHOP = "http://shop.test/orders"


@dataclass(frozen=True)
class Arrival:
    """A call: when it is made and given up, and what is asked for."""

    at: float = 0.0
    cancelled: float | None = None
    cancels: int | None = None
    """The call that is given up in the very moment in which this one ends."""
    options: dict[str, Any] = field(default_factory=dict)
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
