"""Calls that wait, are refused, or are given up while a part of their chain waits."""

import asyncio

import aiohttp
from story_chains import (
    breaking,
    logging_with,
    new_breaker,
    one_breaker,
    plain,
    retrying,
)
from story_decorators import (
    AsyncStrategy,
    BreakerStrategy,
    ContentStrategy,
    Strategy,
    watching,
)
from story_service import ONCE, Arrival, after, scripted
from story_text import BreakerWitness, LimiterWitness, told_context

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    HedgingClient,
    RateLimit,
    RateLimitingClient,
    RetryStrategy,
    client_decorator,
    new_response,
)

SOON = RetryStrategy.failsafe(Backoff.fixed(1.0))
"""Retries after a second."""

THREE = (Arrival(), Arrival(), Arrival())
TWO = (Arrival(), Arrival(0.25))
SECOND = after(1.0)
LATE = aiohttp.ClientTimeout(total=0.5)


def places(limit=1, **settings):
    """Let so many calls be in flight, or as many as a limit says."""

    def part(witness):
        made = limit if isinstance(limit, int) else limit()
        if made is limit:
            made = ConcurrencyLimit.fixed(limit, name="shop")
        witness.states.append(lambda: (made.limit, made.in_flight, made.pending))
        return ConcurrencyLimitingClient.new_decorator(made, **settings)

    return part


def turns(make=lambda: RateLimit(1, per=1.0), **settings):
    """Let calls go out at a rate."""

    def part(witness):
        limit = make()
        witness.states.append(lambda: limit.pending)
        return RateLimitingClient.new_decorator(limit, **settings)

    return part


def per_host(witness):
    return ConcurrencyLimitingClient.new_per_host_decorator(lambda key: 1)


def failing(witness):
    """Let nobody through: the limit cannot be told."""

    def limit():
        raise LookupError("limit")

    return ConcurrencyLimitingClient.new_decorator(
        ConcurrencyLimit.fixed(limit, name="shop")
    )


def chains(limit):
    return {
        "alone": (limit,),
        "retried": (limit, breaking(), retrying(SOON, LimiterWitness), logging_with()),
        "watched": (
            watching("inside"),
            limit,
            watching("between"),
            retrying(SOON),
            watching("outside"),
        ),
        "around all attempts": (breaking(), retrying(SOON), limit, logging_with()),
        "attempts of 0.4 s": (limit, breaking(), retrying(SOON, attempt_timeout=0.4)),
        "in a half-open circuit": (
            limit,
            one_breaker(CircuitState.HALF_OPEN),
            retrying(SOON),
        ),
    }


CROWDS = {
    "one": ONCE,
    "three at once": THREE,
    "two in turn": (Arrival(), Arrival(1.5)),
    "deadline of the second": (Arrival(), Arrival(options={"timeout": LATE})),
    "second is cancelled": (Arrival(), Arrival(cancelled=0.5), Arrival()),
    "first is cancelled": (Arrival(cancelled=0.5), Arrival(), Arrival()),
    "all are cancelled": tuple(Arrival(cancelled=0.5) for _ in range(3)),
    "second is cancelled at its turn": (Arrival(cancels=1), Arrival(), Arrival()),
    "POST": (Arrival(method="POST"), Arrival(method="POST")),
}
"""By name: when calls arrive, and are given up."""

LIMITS = {
    "a place": places(),
    "a place, no queue": places(max_pending=0),
    "a place in 0.5 s": places(timeout=0.5),
    "a place of two": places(2),
    "a turn": turns(),
    "a turn in 0.5 s": turns(timeout=0.5),
}
"""By name."""

ANSWERS = {
    "a success": [(200, b"fine")] * 9,
    "a failure": [503, aiohttp.ServerDisconnectedError, (200, b"fine")],
    "failures": [503] * 9,
}

LEARNT = {
    "Retry-After": (429, {"Retry-After": "5"}, b"slow"),
    "RateLimit": (200, {"RateLimit": '"default";r=0;t=3'}, b"last"),
    "X-RateLimit": (
        200,
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "3"},
        b"last",
    ),
}
"""By name: answers from which a limit learns."""


def slowly(answers):
    """Answer after a second each."""
    return [after(1.0, answer) for answer in answers]


STORIES = {
    **{
        f"{name}: {chain}: {crowd}": scripted(
            *parts, answers=[SECOND] * 9, arrivals=arrivals
        )
        for name, limit in LIMITS.items()
        for chain, parts in chains(limit).items()
        for crowd, arrivals in CROWDS.items()
    },
    **{
        f"{name}: {chain}: {answer}": scripted(
            *parts, answers=slowly(answers), arrivals=TWO
        )
        for name, limit in {"a place": places(), "a turn": turns()}.items()
        for chain, parts in chains(limit).items()
        for answer, answers in ANSWERS.items()
    },
    **{
        f"{name}: {chain}: {answer}": scripted(
            *parts, answers=answers, arrivals=THREE * 3
        )
        for name, limit in {
            "AIMD": places(lambda: ConcurrencyLimit.aimd(initial=3, name="shop")),
            "gradient": places(
                lambda: ConcurrencyLimit.gradient(initial=3, name="shop")
            ),
        }.items()
        for chain, parts in chains(limit).items()
        for answer, answers in {
            "fine": [SECOND] * 9,
            "503": slowly([200, 503, 503]),
            "cut": slowly([200, aiohttp.ServerDisconnectedError]),
        }.items()
    },
    **{
        f"learnt from {name}: {chain}": scripted(
            *parts, answers=[answer], arrivals=(Arrival(), Arrival(0.5), Arrival(0.5))
        )
        for chain, parts in chains(turns(RateLimit.from_headers)).items()
        for name, answer in LEARNT.items()
    },
    **{
        f"limit that raises: {chain}": scripted(*parts, answers=[])
        for chain, parts in chains(failing).items()
    },
    **{
        f"a place of a host: {chain}": scripted(
            *parts, answers=[SECOND] * 3, arrivals=THREE
        )
        for chain, parts in chains(per_host).items()
    },
    **{
        f"{names}: {crowd}": scripted(
            *parts,
            one_breaker(CircuitState.HALF_OPEN),
            retrying(SOON, LimiterWitness),
            logging_with(),
            answers=[SECOND] * 9,
            arrivals=arrivals,
        )
        for names, parts in {
            "a place, then a turn": (turns(), places()),
            "a turn, then a place": (places(), turns()),
            "two places": (places(), places(2)),
            "turn after turn": (turns(), turns(lambda: RateLimit(1, per=2.0))),
        }.items()
        for crowd, arrivals in CROWDS.items()
    },
}
"""By name: functions that tell the story, in virtual time."""


MINUTE = 60.0


def once(witness, what):
    """Make a function that waits for a minute when it is first awaited."""
    left = [MINUTE]

    async def wait(ctx=None):
        witness.note("waits", what, None if ctx is None else told_context(ctx))
        await asyncio.sleep(left.pop() if left else 0.0)

    return wait


def limiter(*names):
    """Make a class of limiters whose methods of these names wait."""

    class WaitingLimiter(LimiterWitness):
        def __init__(self, witness):
            super().__init__(witness)
            self._wait = once(witness, "limiter")

    def waiting(name):
        async def method(self, *arguments):
            await self._wait(arguments[0])
            return getattr(LimiterWitness, name)(self, *arguments)

        return method

    for name in names:
        setattr(WaitingLimiter, name, waiting(name))
    return WaitingLimiter


class WaitingStrategy(AsyncStrategy):
    def __init__(self, witness):
        super().__init__(witness)
        self._wait = once(witness, "strategy")

    async def should_retry(self, ctx, cause):
        await self._wait(ctx)
        return await super().should_retry(ctx, cause)


class WaitingContentStrategy(ContentStrategy):
    def __init__(self, witness):
        super().__init__(witness)
        self._wait = once(witness, "content strategy")

    async def should_retry(self, ctx, cause, content):
        await self._wait(ctx)
        return await super().should_retry(ctx, cause, content)


class WaitingBreakerStrategy(BreakerStrategy):
    def __init__(self, witness):
        super().__init__(witness)
        self._wait = once(witness, "breaker's strategy")

    async def should_report_as_success(self, ctx, cause):
        await self._wait(ctx)
        return super().should_report_as_success(ctx, cause)


def judged(witness):
    breaker = new_breaker(witness, "judged")
    breaker.enter_state(CircuitState.HALF_OPEN)
    return CircuitBreakerClient.new_decorator(breaker, WaitingBreakerStrategy(witness))


def falling_back(witness):
    wait = once(witness, "fallback")

    async def fallback(ctx, request):
        await wait(ctx)
        return new_response(request, 203, body=b"instead")

    breaker = new_breaker(witness, "forced")
    breaker.enter_state(CircuitState.FORCED_OPEN)
    return CircuitBreakerClient.new_decorator(breaker, fallback=fallback)


def waiting(where):
    """Wait in a function of the user's, before or after what is inside."""

    def part(witness):
        wait = once(witness, where)

        @client_decorator
        async def decorate(delegate, ctx, request):
            if where == "before":
                await wait(ctx)
                return await delegate.execute(ctx, request)
            try:
                response = await delegate.execute(ctx, request)
            except Exception:
                await wait(ctx)
                raise
            await wait(ctx)
            return response

        return decorate

    return part


class CancellingListener(BreakerWitness):
    """Gives up the call that it hears of."""

    def on_event_count_updated(self, circuit_breaker, event_count):
        super().on_event_count_updated(circuit_breaker, event_count)
        asyncio.current_task().cancel("by a listener")


def cancelling(witness):
    breaker = CircuitBreaker("cancelling", listeners=[CancellingListener(witness)])
    return CircuitBreakerClient.new_decorator(breaker)


LATER = RetryStrategy.failsafe(Backoff.fixed(MINUTE))

WAITS = {
    "the server": (retrying(LATER),),
    "a backoff": (retrying(LATER, LimiterWitness),),
    "acquire": (retrying(limiter=limiter("acquire")),),
    "on_success": (retrying(limiter=limiter("on_success")),),
    "on_failure": (retrying(limiter=limiter("on_failure")),),
    "release": (retrying(LATER, limiter("release")),),
    "on_retry_end": (retrying(limiter=limiter("on_retry_end")),),
    "a strategy": (retrying(WaitingStrategy),),
    "a content strategy": (retrying(WaitingContentStrategy),),
    "a breaker's strategy": (judged, retrying(Strategy)),
    "a fallback": (falling_back, retrying(Strategy)),
    "before, inside": (waiting("before"), retrying(Strategy)),
    "after, inside": (waiting("after"), retrying(Strategy)),
    "before, outside": (retrying(Strategy), waiting("before")),
    "after, outside": (retrying(Strategy), waiting("after")),
    "a hedge": (plain(HedgingClient.new_decorator(MINUTE)), retrying(Strategy)),
    "a hedge's limiter": (
        lambda witness: HedgingClient.new_decorator(
            0.25, limiter=limiter("acquire")(witness)
        ),
        retrying(Strategy),
    ),
    "a listener that cancels": (cancelling, retrying(Strategy)),
    "attempts of 0.4 s": (waiting("after"), retrying(Strategy, attempt_timeout=0.4)),
    "buffered": (waiting("after"), retrying(Strategy, buffer_response=True)),
}
"""By name: what waits, inside a half-open circuit and limits."""

ENDS = {
    "let be": Arrival(),
    "cancelled": Arrival(cancelled=1.0),
    "past the deadline": Arrival(options={"timeout": aiohttp.ClientTimeout(total=1.0)}),
    "POST, cancelled": Arrival(cancelled=1.0, method="POST"),
}
"""By name."""

WAIT_ANSWERS = {
    "200": [(200, b"fine")],
    "503, 200": [(503, b"try again"), (200, b"fine")],
    "cut, 200": [aiohttp.ServerDisconnectedError, (200, b"fine")],
    "late": [after(30.0, 503), after(30.0, 200)],
}
"""By name."""


def limited(*parts):
    """Put parts where permits of all kinds are held."""
    rate = turns(lambda: RateLimit(1e6))
    return (places(), rate, breaking(), *parts, logging_with(), watching("outside"))


def within(*parts):
    """Put the limits around all attempts."""
    return (*parts, breaking(), turns(lambda: RateLimit(1e6)), places(), logging_with())


WAIT_STORIES = {
    **{
        f"{name}: {answer}: {end}": scripted(
            *limited(*parts), answers=answers, arrivals=[arrival]
        )
        for name, parts in WAITS.items()
        for answer, answers in WAIT_ANSWERS.items()
        for end, arrival in ENDS.items()
    },
    **{
        f"{name}: {answer}: {end}, limits outside": scripted(
            *within(*parts), answers=answers, arrivals=[arrival]
        )
        for name, parts in WAITS.items()
        for answer, answers in WAIT_ANSWERS.items()
        for end, arrival in ENDS.items()
        if end != "let be"
    },
}
"""By name: functions that tell the story, in virtual time."""
