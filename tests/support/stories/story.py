"""Make a call, and describe all that takes part in it."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from story_calls import GET, Answers, Request, read
from story_chains import Chain
from story_text import Witness, settled, told_error, told_log

from aioretry_smithy import RequestLog, capture_logs, request_options


@dataclass(frozen=True)
class Scenario:
    """A request, what the caller does with it, through which chain, and the server."""

    chain: Chain
    answers: Answers
    request: Request = GET
    way: Callable = read


async def story(scenario):
    """Play a scenario with a session and a server of its own; tell all of it."""
    witness = Witness()
    answers, asked = scenario.answers, scenario.request
    faults = answers.faults(witness)
    async with answers.server(faults, answers.then, answers.connections) as server:
        with (
            witness.listening(scenario.chain.level),
            capture_logs() as witness.logs,
            errors_of_loop(witness),
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("always")
            async with scenario.chain.open(
                witness, base_url=server.url, **asked.session()
            ) as session:
                result = await told(scenario, witness, session, server)
                after = None
                if answers.again:
                    after = await told_of(witness, one_more(session))
                jar = [str(cookie) for cookie in session.cookie_jar]
            await asyncio.sleep(0)
            state = [tell() for tell in witness.states]
    return {
        "result": settled(result),
        "after": settled(after),
        "wire": settled([told_request(each) for each in server.requests]),
        "seen": witness.seen,
        "state": settled(state),
        "logs": [told_log(log) for log in witness.logs],
        "jar": sorted(jar),
        "warned": settled([(each.category, str(each.message)) for each in warned]),
    }


async def told(scenario, witness, session, server):
    """Let the caller do what it does; tell what came of it."""
    asked = scenario.request
    options = {**asked.options(), **scenario.answers.options}
    seconds = options.pop("block", None)

    def call():
        return session.request(
            scenario.request.method, scenario.request.path, **options
        )

    with (
        contextlib.nullcontext()
        if seconds is None
        else request_options(response_timeout=seconds)
    ):
        return await told_of(witness, scenario.way(witness, call, server))


async def told_of(witness, awaitable):
    try:
        return await awaitable
    except BaseExceptionGroup as group:
        return [told_error(error) for error in group.exceptions]
    except Exception as error:
        log = RequestLog.of(error, None)
        return told_error(error), log if log is None else witness.logs.index(log)


async def one_more(session):
    """Show which connection is free, and what a breaker says now."""
    async with session.get("/after") as response:
        return response.status, await response.read()


def told_request(received):
    return received.connection, received.head, bytes(received.body), received.is_whole


@contextlib.contextmanager
def errors_of_loop(witness):
    """Note the errors that only the event loop sees."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(
        lambda loop, context: witness.note("loop", context["message"])
    )
    try:
        yield
    finally:
        loop.set_exception_handler(None)
