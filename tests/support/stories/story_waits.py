"""Calls that are given up while a part of their chain waits, before or after it sends.

Each part waits for a minute, once; calls are given up after a second.
"""

import asyncio

import aiohttp
from story_chains import breaking, logging_with, new_breaker, plain, retrying
from story_decorators import (
    AsyncStrategy,
    BreakerStrategy,
    ContentStrategy,
    Strategy,
    watching,
)
from story_limits import places, turns
from story_service import Arrival, after, scripted
from story_text import BreakerWitness, LimiterWitness, told_context

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    HedgingClient,
    RateLimit,
    RetryStrategy,
    client_decorator,
    new_response,
)

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

ANSWERS = {
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


STORIES = {
    **{
        f"{name}: {answer}: {end}": scripted(
            *limited(*parts), answers=answers, arrivals=[arrival]
        )
        for name, parts in WAITS.items()
        for answer, answers in ANSWERS.items()
        for end, arrival in ENDS.items()
    },
    **{
        f"{name}: {answer}: {end}, limits outside": scripted(
            *within(*parts), answers=answers, arrivals=[arrival]
        )
        for name, parts in WAITS.items()
        for answer, answers in ANSWERS.items()
        for end, arrival in ENDS.items()
        if end != "let be"
    },
}
"""By name: functions that tell the story, in virtual time."""
