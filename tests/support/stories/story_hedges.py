"""Calls that are hedged: which request wins is decided by events, not by seconds."""

import asyncio
import logging

from fault_server import End, Fault, FaultServer, Read, answer, cut, response
from story import Scenario
from story_calls import BUSY, SILENT, Answers, always, request, timed_out_outside
from story_chains import (
    breaking,
    budget,
    chain,
    logging_with,
    new_breaker,
    plain,
    retrying,
)
from story_decorators import watching
from story_text import LimiterWitness, told_context, told_error

from aioretry_smithy import (
    CircuitBreakerClient,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    HedgingClient,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    client_decorator,
)

SOON, NEVER = 0.01, 60.0
"""Seconds to a hedge."""

COUNT = "armeria-retry-count"


class CountingServer(FaultServer):
    """Finds the fault of a request by the number of its attempt.

    Its requests are in the order of these numbers: which of two that are sent at once
    comes first is chance.
    """

    async def _fault_for(self, connection, request):
        await self._read(connection, request, Read.HEAD)
        self.requests.sort(key=place_of)
        self._announce()
        faults, number = [*self.faults], number_of(request)
        is_another = request.target == "/after" or number >= len(faults)
        return self.then if is_another else faults[number]

    async def came(self, count):
        """Wait until there are the heads of so many requests."""
        while sum(bool(request.head) for request in self.requests) < count:
            await self._news.wait()


def number_of(request):
    """Return the number of earlier attempts that a request tells."""
    return int(request.header(COUNT) or 0)


def place_of(request):
    return not request.head or request.target == "/after", number_of(request)


class HeldServer(CountingServer):
    """Answers one request, by its number, when two have come."""

    number = 0

    async def _fault_for(self, connection, request):
        fault = await super()._fault_for(connection, request)
        if number_of(request) == self.number:
            await self.came(2)
        return fault


class HeldHedgeServer(HeldServer):
    """Answers the hedge when the first request has come, too."""

    number = 1


def answers(*faults, server=CountingServer, again=True, **options):
    """Describe the answers to the requests of a call, by their numbers."""
    return Answers(lambda witness: [*faults], options, server=server, again=again)


def race(*faults, held=0, **options):
    """Describe answers of which that one is held until there are two requests."""
    server = HeldHedgeServer if held else HeldServer
    return answers(*faults, server=server, again=False, **options)


FINE = answer(200, b"fine", "X-Answer: 42")
LATE = answer(503, b"late", "Retry-After: 3600")
RESET = cut(end=End.RESET)
AT_ONCE = {
    "fine": answers(FINE),
    "404": answers(answer(404, b"gone")),
    "503, then fine": answers(BUSY, FINE),
    "cut, then fine": answers(RESET, FINE),
    "503, then 404": answers(BUSY, answer(404, b"gone")),
    "503 twice": answers(BUSY, answer(503, b"again")),
    "503, then cut": answers(BUSY, RESET),
    "cut, then 503": answers(RESET, BUSY),
    "cut twice": answers(RESET, RESET),
    "cut each time": always(RESET),
    "503 with a hint": answers(LATE, FINE),
    "503, then silence": answers(BUSY, SILENT, timeout=0.4),
    "silence": answers(SILENT, timeout=0.4),
}
"""By name: what needs no hedge that goes out because of the time."""

RACES = {
    "the hedge wins": race(SILENT, FINE, held=1),
    "the hedge loses": race(FINE, SILENT),
    "both silent": race(SILENT, SILENT, timeout=0.4),
}
"""By name: what a hedge decides that goes out soon."""


def hedging(seconds, limiter=None, **settings):
    def part(witness):
        made = None if limiter is None else limiter(witness)
        return HedgingClient.new_decorator(seconds, limiter=made, **settings)

    return part


def chains(seconds):
    hedges = hedging(seconds)
    return {
        "alone": chain(hedges, level=logging.DEBUG),
        "within retries": chain(
            breaking(), hedges, retrying(), logging_with(), level=logging.DEBUG
        ),
        "watched": chain(
            watching("inside"),
            limited(9),
            plain(RateLimitingClient.new_decorator(RateLimit(1e6))),
            breaking(),
            watching("between"),
            hedging(seconds, limiter=LimiterWitness),
            retrying(limiter=LimiterWitness),
            watching("outside"),
        ),
    }


async def cancelled_with_two(witness, call, server):
    """Give up when both requests have come."""
    task = asyncio.ensure_future(_awaited(call))
    await server.came(2)
    witness.look("while two are under way")
    task.cancel("enough")
    try:
        return await task
    except asyncio.CancelledError as error:
        return "cancelled", error.args, RequestLog.of(error) in witness.logs


async def cancelled_with_one(witness, call, server):
    task = asyncio.ensure_future(_awaited(call))
    await server.came(1)
    task.cancel("enough")
    try:
        return await task
    except asyncio.CancelledError as error:
        return "cancelled", error.args, RequestLog.of(error) in witness.logs


async def _awaited(call):
    return await call()


class RefusingLimiter(LimiterWitness):
    """Refuses each hedge, and lets the server answer then."""

    def __init__(self, witness):
        super().__init__(witness)
        witness.refused = self._refused = asyncio.Event()

    def acquire(self, ctx, cause):
        super().acquire(ctx, cause)
        self._refused.set()
        return False


def refused_later(witness):
    """Note what refuses a hedge, and let the server answer the first request then."""
    witness.refused = asyncio.Event()

    @client_decorator
    async def watch(delegate, ctx, request):
        witness.note("sent", told_context(ctx))
        try:
            return await delegate.execute(ctx, request)
        except BaseException as error:
            witness.note("failed", told_context(ctx), told_error(error))
            witness.refused.set()
            raise

    return watch


def opened_by_the_first(witness):
    """Break the circuit when the first request is sent."""
    breaker = new_breaker(witness, "shop")

    @client_decorator
    async def open_it(delegate, ctx, request):
        breaker.enter_state(CircuitState.OPEN)
        return await delegate.execute(ctx, request)

    decorate = CircuitBreakerClient.new_decorator(breaker)
    return lambda delegate: decorate(open_it(delegate))


def limited(limit, **settings):
    def part(witness):
        made = ConcurrencyLimit.fixed(limit, name="shop")
        witness.limit = made
        witness.states.append(lambda: (made.in_flight, made.pending))
        return ConcurrencyLimitingClient.new_decorator(made, **settings)

    return part


def rated(witness):
    limit = RateLimit(1, per=3600.0)
    witness.states.append(lambda: limit.pending)
    return RateLimitingClient.new_decorator(limit, timeout=0.0)


REFUSALS = {
    "by the limiter": (hedging(SOON, RefusingLimiter),),
    "by the breaker": (opened_by_the_first, refused_later, hedging(SOON)),
    "by the concurrency limit": (
        limited(1, max_pending=0),
        refused_later,
        hedging(SOON),
    ),
    "by the rate": (rated, refused_later, hedging(SOON)),
}


def after_refusal(*parts, **settings):
    """Answer one request when the other one has failed."""

    def faults(witness):
        def sent():
            yield witness.refused
            yield from parts

        return [*settings.get("before", ()), Fault(send=sent())]

    return Answers(faults, server=settings.get("server", CountingServer), again=False)


def when_it_waits(witness):
    """Answer the first request when its hedge waits for a place."""

    def sent():
        while not witness.limit.pending:
            yield 0.001
        yield response(200, b"fine")

    return [Fault(send=sent())]


PUT, POST = request("PUT", json=1), request("POST", json=1)
BODY = response(200, b"fine")

SCENARIOS = {
    **{
        f"{name}: {outcome}": Scenario(made, given)
        for seconds, outcomes in ((NEVER, AT_ONCE), (SOON, RACES))
        for name, made in chains(seconds).items()
        for outcome, given in outcomes.items()
        # Which of the two a watcher hears of first is chance.
        if (name, outcome) != ("watched", "both silent")
    },
    **{
        f"two hedges: {outcome}": Scenario(
            chain(breaking(), hedging(NEVER, max_hedges=2), retrying()), given
        )
        for outcome, given in AT_ONCE.items()
    },
    **{
        f"{name}: {kind}: 503, then fine": Scenario(
            made, AT_ONCE["503, then fine"], asked
        )
        for name, made in chains(NEVER).items()
        for kind, asked in {"PUT": PUT, "POST": POST}.items()
    },
    **{
        f"{name}: cancelled with {number}": Scenario(
            chains(seconds)[name], answers(SILENT, SILENT, again=False), way=way
        )
        for name in chains(SOON)
        for number, seconds, way in (
            ("two", SOON, cancelled_with_two),
            ("one", NEVER, cancelled_with_one),
        )
    },
    **{
        f"{name}: timed out outside": Scenario(
            made, race(SILENT, SILENT), way=timed_out_outside
        )
        for name, made in chains(SOON).items()
    },
    **{
        f"hedge refused {name}: 200": Scenario(
            chain(*parts, retrying()), after_refusal(BODY)
        )
        for name, parts in REFUSALS.items()
    },
    **{
        f"hedge refused {name}: 503": Scenario(
            chain(*parts), after_refusal(response(503, b"busy"))
        )
        for name, parts in REFUSALS.items()
    },
    "the first fails, the hedge wins": Scenario(
        chain(refused_later, hedging(SOON), retrying()),
        after_refusal(BODY, before=[RESET], server=HeldServer),
    ),
    "hedge waits for a place": Scenario(
        chain(limited(1, timeout=None), hedging(SOON), retrying()),
        Answers(when_it_waits, again=False),
    ),
    "with a budget": Scenario(
        chain(hedging(NEVER, budget), retrying()), AT_ONCE["503, then fine"]
    ),
}
"""By name."""
