"""Calls that meet injected faults, or whose body is long in coming."""

import asyncio
import logging

import aiohttp
from fault_server import Fault
from story import Scenario
from story_calls import FINE, HALF, STALLED, Answers, answers, told
from story_chains import breaking, chain, logging_with, plain, retrying
from story_decorators import ContentStrategy, watching
from story_hedges import limited
from story_limits import SOON, places, turns
from story_service import Arrival, after, scripted
from story_text import LimiterWitness
from until import until

from aioretry_smithy import (
    Backoff,
    ContentPreviewingClient,
    HedgingClient,
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
        plain(ContentPreviewingClient.new_decorator(20)), retrying(buffer_response=True)
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


LATE = aiohttp.ClientTimeout(total=2.0)
SHORT = aiohttp.ClientTimeout(total=0.5)
BODY = (200, b"a body of the server")


def faults(*injected, chances=(), **settings):
    """Inject faults, by these chances in turn; where there are none left, never."""

    def part(witness):
        left = iter(chances)
        return FaultInjectingClient.new_decorator(
            *injected, random=lambda: next(left, 0.999), **settings
        )

    return part


def always(*injected, **settings):
    return faults(*injected, chances=[0.0] * 99, **settings)


def first(*injected):
    """Inject a fault into the first request."""
    return faults(*injected, chances=[0.0])


def asked(witness):
    """Ask whether a request is to fail."""

    def enabled(ctx, request):
        witness.note("asked", ctx.attempt, request.method)
        return ctx.attempt == 1

    status = InjectedFault.status(503)
    return FaultInjectingClient.new_decorator(status, enabled=enabled)


def unable(ctx, request):
    raise LookupError("enabled")


def odd():
    raise LookupError("random")


BUSY = InjectedFault.status(503, body={"try": "again"}, rate=0.5)
LATER = InjectedFault.status(429, headers={"Retry-After": "3"}, rate=0.5)
CUT = InjectedFault.error(aiohttp.ServerDisconnectedError, rate=0.5)
SLOW = InjectedFault.latency(1.0, rate=0.5)
HANG = InjectedFault.hang(rate=0.5)

FAULTS = {
    "none": always(),
    "status": always(BUSY),
    "status, once": first(BUSY),
    "status with a hint, once": first(LATER),
    "error": always(CUT),
    "error, once": first(CUT),
    "latency": always(SLOW),
    "latency, once": first(SLOW),
    "latencies": always(SLOW, InjectedFault.latency((0.1, 0.5))),
    "latency and status": always(SLOW, BUSY),
    "latency past the deadline": always(InjectedFault.latency(9.0)),
    "hang": always(HANG),
    "hang, once": first(HANG),
    "cut body": always(InjectedFault.cut_body(after=3)),
    "cut body, once": first(InjectedFault.cut_body(after=3, rate=0.5)),
    "short body": always(InjectedFault.cut_body(after=300)),
    "another method": always(
        InjectedFault.status(
            503, request_filter=lambda request: request.method != "GET"
        )
    ),
    "asked": asked,
    "not able to say": faults(BUSY, enabled=unable),
    "chance that raises": plain(FaultInjectingClient.new_decorator(BUSY, random=odd)),
    "off": always(BUSY, enabled=False),
}
"""By name."""


def chains(fault):
    return {
        "alone": (fault,),
        "retried": (fault, breaking(), retrying(SOON, LimiterWitness), logging_with()),
        "watched": (
            watching("inside"),
            fault,
            watching("between"),
            places(),
            retrying(SOON, attempt_timeout=0.4),
            watching("outside"),
        ),
        "hedged": (
            fault,
            breaking(),
            plain(HedgingClient.new_decorator(0.25)),
            retrying(SOON),
        ),
    }


STORIES = {
    **{
        f"{name}: {chain}": scripted(
            *parts, answers=[BODY] * 9, arrivals=[Arrival(options={"timeout": LATE})]
        )
        for name, fault in FAULTS.items()
        for chain, parts in chains(fault).items()
    },
    **{
        f"{name}: {chain}: {ending}": scripted(
            *parts, answers=[BODY] * 9, arrivals=[arrival]
        )
        for name in ("latency", "hang, once", "latency and status")
        for chain, parts in chains(FAULTS[name]).items()
        for ending, arrival in {
            "cancelled": Arrival(cancelled=0.3),
            "timed out": Arrival(options={"timeout": SHORT}),
        }.items()
    },
    **{
        f"slow server: {chain}": scripted(
            *parts, answers=[after(0.5, BODY), after(0.1, BODY)], arrivals=[Arrival()]
        )
        for chain, parts in chains(always()).items()
    },
}
"""By name: functions that tell the story, in virtual time."""
