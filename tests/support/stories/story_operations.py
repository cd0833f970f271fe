"""Functions that make requests, or call functions, in virtual time."""

import asyncio

import aiohttp
from story_chains import breaking, chain, logging_with, plain, retrying
from story_decorators import watching
from story_functions import broken, logged, one_call, retried
from story_limits import SOON, places
from story_service import ONCE, SHOP, Arrival, played
from story_text import LimiterWitness

from aioretry_smithy import (
    Backoff,
    RetryConfig,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    request_options,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport

INNER = {
    "plain": (),
    "retried": (breaking(), retrying(SOON), logging_with()),
    "limited": (places(), breaking(), retrying(SOON, LimiterWitness)),
}
"""By name: the chain of the session that is used inside."""

HTTP = {
    "200": [200],
    "503, 200": [503, 200],
    "503": [503] * 9,
    "cut, 200": [aiohttp.ServerDisconnectedError, 200],
    "cut": [aiohttp.ServerDisconnectedError] * 9,
    "404": [404],
    "silence": [lambda ctx, request: asyncio.sleep(60.0, 200)] * 9,
}
"""By name: the answers to the calls inside."""


async def one_request(session):
    async with session.get(SHOP) as response:
        response.raise_for_status()
        return response.status, await response.read()


async def two_requests(session):
    return [await one_request(session) for _ in range(2)]


async def two_tasks(session):
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one_request(session)) for _ in range(2)]
    return [task.result() for task in tasks]


async def fails_after_all(session):
    await one_request(session)
    raise LookupError("after all")


async def a_function_inside(session):
    @rpc(
        RetryingRpcClient.new_decorator(
            RetryRule(exceptions=[aiohttp.ClientError], backoff=Backoff.fixed(1.0)),
            max_total_attempts=2,
        ),
        name="inside",
    )
    async def inside():
        return await one_request(session)

    return await inside()


async def without_retry(session):
    with request_options(retry=RetryConfig.no_retry()):
        return await one_request(session)


USES = {
    "one request": one_request,
    "two requests": two_requests,
    "two tasks": two_tasks,
    "fails after all": fails_after_all,
    "a function inside": a_function_inside,
    "without retry": without_retry,
}
"""By name: what the function does with the session."""

OUTER = {
    "bare": (),
    "full": (
        broken(),
        retried(
            RetryRule(
                exceptions=[aiohttp.ClientError, LookupError],
                on_timeout=True,
                backoff=Backoff.fixed(1.0),
            ),
            attempt_timeout=3.0,
            max_total_attempts=2,
        ),
        logged(),
    ),
    "failsafe": (retried(RetryStrategy.failsafe(Backoff.fixed(1.0))), watching("out")),
}
"""By name: what the function is decorated with."""


def with_session(outer, inner, answers, use, arrivals=ONCE):
    """Describe calls of a function that makes requests."""

    async def play(witness):
        transport = plain(ScriptedTransport(iter([*answers, *[200] * 99])))
        async with chain(transport, *inner).open(witness) as session:

            async def operation(*args, **kwargs):
                return await use(session)

            decorators = [part(witness) for part in outer]
            call = rpc(*decorators, name="operation", idempotent=True)(operation)
            calls = (one_call(witness, call, each, {}) for each in arrivals)
            return await asyncio.gather(*calls)

    return lambda: played(play)


STORIES = {
    **{
        f"{outer} around {inner}: {use}: {answer}": with_session(
            parts, inside, answers, made
        )
        for outer, parts in OUTER.items()
        for inner, inside in INNER.items()
        for use, made in USES.items()
        for answer, answers in HTTP.items()
        if (outer, answer) == ("full", "silence") or answer != "silence"
    },
    **{
        f"{outer} around {inner}: {use}: cancelled": with_session(
            parts, inside, HTTP["silence"], made, [Arrival(cancelled=1.0), Arrival()]
        )
        for outer, parts in OUTER.items()
        for inner, inside in INNER.items()
        for use, made in USES.items()
        if outer == "full"
    },
}
"""By name: functions that tell the story, in virtual time."""
