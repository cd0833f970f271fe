"""Calls of functions, alone or making requests and calling others, in virtual time."""

import asyncio

import aiohttp
from story_chains import (
    breaking,
    budget,
    chain,
    logging_with,
    new_breaker,
    plain,
    retrying,
)
from story_decorators import ContentStrategy, FailingStrategy, watching
from story_limits import SOON, places
from story_service import ONCE, SHOP, Arrival, outcome_of, played
from story_text import (
    AsyncLimiterWitness,
    LimiterWitness,
    rounded,
    told_context,
    told_error,
)

from aioretry_smithy import (
    Backoff,
    CircuitBreakerRpcClient,
    CircuitState,
    LoggingRpcClient,
    RetryConfig,
    RetryingRpcClient,
    RetryRule,
    RetryRuleWithContent,
    RetryStrategy,
    request_options,
    rpc,
)
from aioretry_smithy.smithy import (
    StandardRetryQuota,
    StandardRetryStrategy,
    from_backoff,
)
from aioretry_smithy.testing import ScriptedTransport

RULE = RetryRule(exceptions=[LookupError], on_timeout=True, backoff=Backoff.fixed(1.0))


class Alarm(BaseException):
    """An error that a handler of signals may raise anywhere."""


class RpcStrategy(RetryStrategy):
    """Retries lookups, and notes what it was asked."""

    def __init__(self, witness):
        self._note = witness.note

    def should_retry(self, ctx, cause):
        self._note("asked", told_context(ctx), told_error(cause))
        return Backoff.fixed(1.0) if isinstance(cause, LookupError) else None


def retried(strategy=RULE, limiter=None, **settings):
    """Make at most three attempts at a function, with a second between them."""

    def part(witness):
        return RetryingRpcClient.new_decorator(
            strategy(witness) if isinstance(strategy, type) else strategy,
            limiter=None if limiter is None else limiter(witness),
            **{"max_total_attempts": 3, **settings},
        )

    return part


def smithy(witness):
    quota = StandardRetryQuota(500)
    witness.states.append(lambda: quota.available_capacity)
    strategy = StandardRetryStrategy(
        backoff_strategy=from_backoff(Backoff.fixed(1.0)),
        max_attempts=3,
        retry_quota=quota,
    )
    return RetryingRpcClient.new_decorator(strategy)


def broken(state=None, **settings):
    """Break the circuit of a function, which may be in a state from the beginning."""

    def part(witness):
        breaker = new_breaker(witness, "shop", **settings)
        if state is not None:
            breaker.enter_state(state)
        return CircuitBreakerRpcClient.new_decorator(breaker)

    return part


def logged(**settings):
    return plain(LoggingRpcClient.new_decorator(**settings))


FULL = (broken(), retried(limiter=LimiterWitness), logged())

CHAINS = {
    "bare": (),
    "retried": (retried(),),
    "full": FULL,
    "logged": (logged(),),
    "broken": (broken(),),
    "watched": (watching("1"), broken(), watching("2"), retried(), watching("3")),
    "strategy": (broken(), retried(RpcStrategy), logged()),
    "failing strategy": (retried(FailingStrategy), logged()),
    "content strategy": (broken(), retried(ContentStrategy), logged()),
    "content rule": (
        retried(
            RetryRuleWithContent(
                on_content=lambda content: content == "again",
                backoff=Backoff.fixed(1.0),
            )
            | RULE
        ),
    ),
    "async limiter": (retried(limiter=AsyncLimiterWitness), logged()),
    "budget": (retried(limiter=budget), broken()),
    "attempts of 2 s": (broken(), retried(attempt_timeout=2.0), logged()),
    "Smithy": (broken(), smithy, logged()),
    "failsafe": (retried(RetryStrategy.failsafe(Backoff.fixed(1.0))),),
    "no retry": (
        broken(),
        plain(RetryingRpcClient.new_decorator(RetryConfig.no_retry())),
        logged(),
    ),
    "open": (broken(CircuitState.OPEN), retried(), logged()),
    "half open": (broken(CircuitState.HALF_OPEN), retried(), logged()),
    "opens soon": (
        broken(minimum_request_threshold=2, failure_rate_threshold=0.1),
        retried(),
    ),
}
"""By name: what a function is decorated with, from the inside out."""


def returned(outcome):
    """Return an outcome, or raise a copy: an exception keeps what it was raised in."""
    if isinstance(outcome, BaseException):
        raise type(outcome)(*outcome.args)
    return outcome


def taking(seconds, *outcomes):
    """Describe a function that takes so long, and returns or raises in turn."""

    def make(witness):
        left = iter(outcomes)

        async def fetch(*args, **kwargs):
            witness.note("called", args, kwargs)
            await asyncio.sleep(seconds)
            outcome = next(left, outcomes[-1])
            return returned(outcome)

        return fetch

    return make


def at_once(*outcomes):
    def make(witness):
        left = iter(outcomes)

        async def fetch(*args, **kwargs):
            outcome = next(left, outcomes[-1])
            return returned(outcome)

        return fetch

    return make


def slow_then(answer):
    """Describe a function whose first call takes a minute."""

    def make(witness):
        seconds = iter([60.0])

        async def fetch(*args, **kwargs):
            try:
                await asyncio.sleep(next(seconds, 0.25))
            finally:
                witness.note("left", rounded(asyncio.get_running_loop().time()))
            return answer

        return fetch

    return make


def swallowing(witness):
    """Return when cancelled."""

    async def fetch(*args, **kwargs):
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            return "swallowed"

    return fetch


def cleaning_up(witness):
    """Take a second to end when cancelled."""

    async def fetch(*args, **kwargs):
        try:
            await asyncio.sleep(60.0)
        finally:
            await asyncio.sleep(1.0)

    return fetch


def changing_its_mind(witness):
    """Raise something else when cancelled."""

    async def fetch(*args, **kwargs):
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError as error:
            raise LookupError("cancelled") from error

    return fetch


def cancelling_itself(witness):
    async def fetch(*args, **kwargs):
        asyncio.current_task().cancel("itself")
        await asyncio.sleep(1.0)

    return fetch


FUNCTIONS = {
    "returns at once": at_once("fine"),
    "fails at once, returns": at_once(LookupError("one"), "fine"),
    "returns": taking(0.25, "fine"),
    "returns what is no success": taking(0.25, "again", b"try again", "fine"),
    "fails, returns": taking(0.25, LookupError("one"), "fine"),
    "fails twice, returns": taking(0.25, LookupError(1), KeyError(2), "fine"),
    "fails": taking(0.25, LookupError("one"), LookupError("two"), LookupError("three")),
    "fails for good": taking(0.25, ValueError("bad")),
    "fails like a client": taking(0.25, aiohttp.ServerDisconnectedError(), "fine"),
    "fails in a group": taking(0.25, ExceptionGroup("two", [LookupError(1)]), "fine"),
    "times out itself": taking(0.25, TimeoutError("late"), "fine"),
    "is alarmed": taking(0.25, Alarm("now")),
    "is slow once": slow_then("fine"),
    "is slow": taking(60.0, "late"),
    "swallows": swallowing,
    "cleans up": cleaning_up,
    "changes its mind": changing_its_mind,
    "cancels itself": cancelling_itself,
}
"""By name: what makes a function, given a witness."""

ARRIVALS = {
    "": (Arrival(),),
    ": cancelled": (Arrival(cancelled=0.1),),
    ": cancelled while it waits": (Arrival(cancelled=0.75),),
    ": cancelled late": (Arrival(cancelled=4.0),),
    ": two at once": (Arrival(), Arrival(0.1)),
}
"""By name: when a function is called, and the call given up."""


def functions(parts, make, arrivals=ONCE, options=None, **settings):
    """Describe calls of a decorated function."""

    async def play(witness):
        decorators = [part(witness) for part in parts]
        settings_ = {"response_timeout": 10.0, "idempotent": True, **settings}
        fetch = rpc(*decorators, name="fetch", **settings_)(make(witness))
        calls = (one_call(witness, fetch, each, options or {}) for each in arrivals)
        return await asyncio.gather(*calls)

    return lambda: played(play)


async def one_call(witness, fetch, arrival, options):
    loop = asyncio.get_running_loop()
    await asyncio.sleep(arrival.at)
    with request_options(**options):
        task = asyncio.ensure_future(_alarmed(fetch("one", two=2)))
    if arrival.cancelled is not None:
        loop.call_at(arrival.cancelled, task.cancel, "enough")
    return await outcome_of(witness, task), rounded(loop.time())


async def _alarmed(call):
    # What is no Exception would end the loop.
    try:
        return await call
    except Alarm as alarm:
        return told_error(alarm)


STORIES = {
    **{
        f"{chain}: {name}{arrival}": functions(parts, make, arrivals)
        for chain, parts in CHAINS.items()
        for name, make in FUNCTIONS.items()
        for arrival, arrivals in ARRIVALS.items()
        if not arrival or chain in {"bare", "full", "watched", "half open"}
    },
    **{
        f"{chain}: {name}: {options}": functions(CHAINS[chain], make, options=given)
        for chain in ("bare", "full", "watched")
        for name, make in FUNCTIONS.items()
        for options, given in {
            "without retry": {"retry": RetryConfig.no_retry()},
            "in 0.1 s": {"response_timeout": 0.1},
            "attributes": {"attributes": {"block": 1}},
        }.items()
    },
}
"""By name: functions that tell the story, in virtual time."""


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


OPERATIONS = {
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
