"""Calls that meet injected faults, in virtual time."""

from __future__ import annotations

import aiohttp
from story_chains import breaking, logging_with, plain, retrying
from story_decorators import watching
from story_limits import SOON, places
from story_script import Arrival, after, scripted
from story_witness import LimiterWitness

from aioretry_smithy import HedgingClient
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault

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
        "retried": (
            fault,
            breaking(),
            retrying(SOON, LimiterWitness),
            logging_with(),
        ),
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
