"""Calls whose body is long in coming: to what reads it inside, or holds a place."""

from __future__ import annotations

import asyncio
import logging

import aiohttp
from fault_server import Fault
from story import Scenario
from story_calls import FINE, HALF, STALLED, Answers, answers, told
from story_chains import breaking, chain, logging_with, plain, retrying
from story_decorators import ContentStrategy, watching
from story_hedges import limited
from story_limits import turns
from story_witness import LimiterWitness
from until import until

from aioretry_smithy import (
    Backoff,
    ContentPreviewingClient,
    RateLimit,
    RequestLog,
    RetryRuleWithContent,
)
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault

RULE = RetryRuleWithContent(
    on_content=lambda content: False, backoff=Backoff.without_delay()
)


def reading(*parts):
    """Describe a chain that notes when a response has come, and reads its body."""
    rate = turns(lambda: RateLimit(1e6))
    inside = (watching("inside"), limited(1), rate, breaking())
    return chain(*inside, *parts, logging_with(), level=logging.DEBUG)


CHAINS = {
    "content strategy": reading(retrying(ContentStrategy)),
    "content strategy and limiter": reading(retrying(ContentStrategy, LimiterWitness)),
    "content rule": reading(retrying(RULE)),
    "buffered": reading(retrying(buffer_response=True)),
    "preview": reading(
        plain(ContentPreviewingClient.new_decorator(20)),
        retrying(buffer_response=True),
    ),
    "nothing reads": reading(retrying()),
}
"""By name."""


async def cancelled_while_it_reads(witness, call, server):
    """Give up when the headers are there, and the body is not."""
    task = asyncio.ensure_future(_read(call))
    await until(lambda: any(each.response_status for each in attempts_of(witness)))
    witness.look("while the body comes")
    task.cancel("enough")
    try:
        return await task
    except asyncio.CancelledError as error:
        return "cancelled", error.args, RequestLog.of(error, None) in witness.logs


def attempts_of(witness):
    return [attempt for log in witness.logs for attempt in log.children]


async def _read(call):
    async with call() as response:
        return await response.read()


def after_the_first(use):
    """Make a call that waits for the place of another, until that is used so."""

    async def way(witness, call, server):
        first = await call()
        second = asyncio.ensure_future(_read(call))
        await until(lambda: witness.limit.pending)
        witness.look("while one waits")
        used = await use(witness, first)
        witness.more.set()  # in any case, for the server waits for it
        return used, await second, told(first)

    return way


async def read(witness, response):
    witness.more.set()
    return await response.read()


async def closed(witness, response):
    response.close()


async def released(witness, response):
    response.release()


async def cancelled(witness, response):
    task = asyncio.ensure_future(response.read())
    await asyncio.sleep(0)
    task.cancel("enough")
    try:
        return await task
    except asyncio.CancelledError as error:
        response.close()
        return "cancelled", error.args


def half_first(witness):
    """Send the rest of a body when it is asked for."""
    witness.more = asyncio.Event()

    def sent():
        yield HALF
        yield witness.more
        yield b"x" * 500

    return [Fault(send=sent())]


HOLDING = {
    "a place": chain(limited(1, timeout=None)),
    "a place, retried": chain(
        limited(1, timeout=None), breaking(), retrying(), logging_with()
    ),
    "a place of all attempts": chain(breaking(), retrying(), limited(1, timeout=None)),
}
"""By name."""


def injecting(fault):
    return plain(FaultInjectingClient.new_decorator(fault, random=lambda: 0.0))


IMPATIENT = aiohttp.ClientTimeout(sock_read=0.4)

SCENARIOS = {
    **{
        f"{name}: cancelled": Scenario(
            made, answers(STALLED), way=cancelled_while_it_reads
        )
        for name, made in CHAINS.items()
    },
    **{
        f"{name}: past the deadline": Scenario(made, answers(STALLED, timeout=0.4))
        for name, made in CHAINS.items()
    },
    **{f"{name}: fine": Scenario(made, answers(FINE)) for name, made in CHAINS.items()},
    **{
        f"{name}: {use.__name__}": Scenario(
            made, Answers(half_first), way=after_the_first(use)
        )
        for name, made in HOLDING.items()
        for use in (read, closed, released, cancelled)
    },
    **{
        f"injected {name}: past sock_read": Scenario(
            chain(injecting(fault), breaking(), retrying(), logging_with()),
            Answers(lambda witness: [], {"timeout": IMPATIENT}, again=False),
        )
        for name, fault in {
            "hang": InjectedFault.hang(),
            "latency": InjectedFault.latency(60.0),
        }.items()
    },
    "injected cut": Scenario(
        chain(injecting(InjectedFault.cut_body(after=2)), breaking(), retrying()),
        answers(FINE),
    ),
}
"""By name."""
