"""Calls that wait for a place or a turn, are refused, or are given up meanwhile."""

import aiohttp
from story_chains import breaking, logging_with, one_breaker, retrying
from story_decorators import watching
from story_service import ONCE, Arrival, after, scripted
from story_text import LimiterWitness

from aioretry_smithy import (
    Backoff,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RateLimit,
    RateLimitingClient,
    RetryStrategy,
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
        "retried": (
            limit,
            breaking(),
            retrying(SOON, LimiterWitness),
            logging_with(),
        ),
        "watched": (
            watching("inside"),
            limit,
            watching("between"),
            retrying(SOON),
            watching("outside"),
        ),
        "around all attempts": (breaking(), retrying(SOON), limit, logging_with()),
        "attempts of 0.4 s": (
            limit,
            breaking(),
            retrying(SOON, attempt_timeout=0.4),
        ),
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
