"""Calls that succeed at once pass their clients by, and nobody can tell."""

from __future__ import annotations

import asyncio
import logging

import aiohttp
import pytest
from chains import NOW, URL, now, session

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerRpcClient,
    CircuitState,
    DecoratingClient,
    LoggingRpcClient,
    RequestLog,
    RetryBudget,
    RetryConfig,
    RetryConfigMapping,
    RetryingRpcClient,
    RetryRule,
    RetryRuleWithContent,
    capture_logs,
    client_decorator,
    request_options,
    rpc,
    smithy,
)
from aioretry_smithy._rpc import decorate

RULE = RetryRule(
    exceptions=[KeyError, aiohttp.ClientError], on_timeout=True, backoff=NOW
)


class Story:
    """A call with all clients, and what they say of it afterwards."""

    def __init__(self):
        self.breaker = CircuitBreaker()
        self.budget = RetryBudget(deposit=0.25, capacity=2.0)
        self.called = []
        self.lines = []

    def decorated(self, outcomes):
        """Return a function with these outcomes in turn: results, errors, seconds."""
        rest = iter(outcomes)

        @rpc(
            CircuitBreakerRpcClient.new_decorator(self.breaker),
            RetryingRpcClient.new_decorator(RULE, 3, 2.0, limiter=self.budget),
            LoggingRpcClient.new_decorator(self),
            response_timeout=5.0,
            name="call",
        )
        async def call(client):
            self.called.append(now())
            outcome = next(rest)
            if isinstance(outcome, float):
                await asyncio.sleep(outcome)
            elif isinstance(outcome, str):
                return (await client.get(f"{URL}/{outcome}")).status
            elif isinstance(outcome, BaseException):
                raise outcome
            return outcome

        return call

    def isEnabledFor(self, level):  # noqa: N802
        return level > logging.DEBUG

    def log(self, level, line, extra):
        self.lines.append((level, line.partition("startTime")[0]))

    async def told(self, outcomes):
        """Make the calls until the outcomes are used up, and tell all there is."""
        call = self.decorated(outcomes)
        results = []
        async with session([503, aiohttp.ServerDisconnectedError(), 200] * 3) as client:
            while len(self.called) < len(outcomes):
                try:
                    results.append(await call(client))
                except BaseException as error:
                    results.append((repr(error), *getattr(error, "__notes__", ())))
                    results.append(repr(error.__cause__))
                    results.append(timeless(RequestLog.of(error).to_dict()))
                    results.append(RequestLog.of(error).render())
        counts = self.breaker.event_count
        return (
            results,
            self.called,
            self.lines,
            (counts.success, counts.failure, self.budget.tokens, now()),
            asyncio.current_task().cancelling(),
        )


def timeless(log):
    """Leave out the time of day."""
    parts = {name: map(timeless, log.get(name, ())) for name in ("children", "calls")}
    return (
        log
        | {name: [*part] for name, part in parts.items()}
        | {"request_started_at": None}
    )


STORIES = {
    "success": [1],
    "none": [None],
    "failures, then success": [KeyError("a"), KeyError("b"), 7],
    "only failures": [KeyError(str(number)) for number in range(3)],
    "a failure of another kind": [ValueError("bad")],
    "slow, then cut": [1.5, 3.0, 2.5, 1],
    "cut at the deadline": [3.0, 3.0, 3.0],
    "cancelled": [asyncio.CancelledError()],
    "one after another": [1, KeyError(), 2, 3, ValueError(), 4],
    "requests": ["a", "b", "c", "d"],
    "a request that fails, then an error": ["a", "b", ValueError()],
}


@pytest.mark.parametrize("outcomes", STORIES.values(), ids=STORIES)
async def test_lanes_cannot_be_told_apart(outcomes, monkeypatch):
    """The same results, errors, logs, notes, lines, counts and times."""
    started = now()
    quick = await Story().told(outcomes)
    monkeypatch.setattr(decorate, "quick_lane_of", lambda *arguments: None)
    await asyncio.sleep(1000.0 - (now() - started))
    ordinary = await Story().told(outcomes)

    assert later(quick, 1000.0) == ordinary


def later(told, seconds):
    """Shift a story to where the second one is told."""
    results, called, lines, (*counts, ended), cancelling = told
    return (
        results,
        [when + seconds for when in called],
        lines,
        (*counts, ended + seconds),
        cancelling,
    )


@pytest.fixture
def logs(monkeypatch):
    """Count the logs that are made."""
    made = []
    begin = RequestLog.__init__
    monkeypatch.setattr(
        RequestLog, "__init__", lambda *args: (made.append(args[0]), begin(*args))[1]
    )
    return made


class Other(LoggingRpcClient):
    """May do more."""


@client_decorator
async def passing(delegate, ctx, request):
    return await delegate.execute(ctx, request)


RETRYING = RetryingRpcClient.new_decorator(RULE)
CONTENT = RetryRuleWithContent(on_content=lambda result: False)
MAPPING = RetryConfigMapping.of(lambda *_: "all", lambda _: RetryConfig(RULE))
LANES = [
    ((), 0),
    ((RETRYING,), 0),
    ((RetryingRpcClient.new_decorator(RULE, attempt_timeout=2.0),), 0),
    ((CircuitBreakerRpcClient.new_decorator(CircuitBreaker()), RETRYING), 0),
    ((LoggingRpcClient.new_decorator(),), 0),
    ((RetryingRpcClient.new_decorator(RULE, limiter=RetryBudget()),), 0),
    ((RetryingRpcClient.new_decorator(CONTENT),), 2),
    ((RetryingRpcClient.new_decorator(smithy.StandardRetryStrategy()),), 2),
    ((RetryingRpcClient.new_mapped_decorator(MAPPING),), 2),
    ((DecoratingClient,), 1),
    ((passing, RETRYING), 2),
    ((Other.new_decorator(),), 1),
]


@pytest.mark.parametrize(("decorators", "made"), LANES)
async def test_chain_of_usual_clients_makes_no_log(decorators, made, logs):
    """A client that has to see every call does."""

    @rpc(*decorators)
    async def call():
        return 7

    assert (7, made) == (await call(), len(logs))


async def test_client_in_place_of_the_function_answers():
    """As a scripted transport does in a session."""

    class Fake:
        async def execute(self, ctx, request):
            return "fake"

    @rpc(lambda delegate: Fake(), RETRYING)
    async def call():
        raise AssertionError

    assert "fake" == await call()


async def test_call_in_a_block_is_not_quick(logs):
    """Its log is captured, or its options are to be looked at."""

    @rpc()
    async def call():
        return 7

    with capture_logs():
        await call()
    with request_options(response_timeout=1.0):
        await call()

    assert 2 == len(logs)


async def test_open_circuit_is_not_quick(logs):
    """It refuses the call in the ordinary lane."""
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    guarded = CircuitBreakerRpcClient.new_decorator(breaker, fallback=lambda *_: 0)

    @rpc(guarded)
    async def call():
        return 7

    assert (0, 1) == (await call(), len(logs))


async def test_limit_is_kept_without_a_log():
    """And no timer of it is left."""

    @rpc(RetryingRpcClient.new_decorator(RULE, 2, 2.0))
    async def hang():
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match=r"^attempt 2 had 2\.000 s"):
        await hang()

    assert 4.0 == now()


async def test_task_that_outlives_a_quick_call_is_free():
    """Its later calls are part of nothing, and have their own time."""
    tasks = []

    async def later(client):
        await asyncio.sleep(5.0)
        return await client.get(URL)

    @rpc(RetryingRpcClient.new_decorator(RULE, 2, 2.0))
    async def call(client):
        tasks.append(asyncio.create_task(later(client)))

    async with session([200]) as client:
        await call(client)
        response = await tasks[0]

    assert (5.0, 200) == (now(), response.status)


async def test_closed_coroutine_ends_its_attempt():
    """In any task: nothing is left of it in the other's context."""

    @rpc(RetryingRpcClient.new_decorator(RetryRule(on_timeout=True), 2))
    async def hang():
        await asyncio.sleep(9.0)

    async def begin():
        coroutine = hang()
        coroutine.send(None)
        return coroutine

    coroutine = await asyncio.create_task(begin())
    coroutine.close()

    @rpc()
    async def quick():
        return 7

    assert 7 == await quick()


async def test_backoff_of_a_handed_over_attempt_counts_from_one():
    """It is the first attempt of the ordinary lane, not a second one."""
    outcomes = iter([KeyError(), KeyError(), None])
    rule = RetryRule(exceptions=[KeyError], backoff=Backoff.exponential(1.0, 9.0))

    @rpc(RetryingRpcClient.new_decorator(rule, 3))
    async def call():
        if error := next(outcomes):
            raise error

    await call()

    assert 3.0 == now()
