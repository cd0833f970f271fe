"""The cost of a chain in function calls and bytecodes: the same on every machine.

``tox run -e bench`` measures the time; these notice what makes it longer.
"""

import asyncio
import gc
import logging
import sys
import tracemalloc
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import hypothesis
import pytest
from bytecodes import bytecodes_of_a_call
from calls import http
from chains import connected
from scenarios import FLAKY
from stub import ADDRESS, Gate, stubbed
from until import lines_run
from variants import bare, chain, readme, smithy, standard

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    DecoratingClient,
    LoggingClient,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    client_decorator,
    new_response,
)
from aioretry_smithy.smithy import CallError, StandardRetryQuota

FEW = 10
IS_THOROUGH = hypothesis.settings.get_current_profile_name() == "thorough"
MANY = 10_000 if IS_THOROUGH else 2_000

smithy_chain = partial(chain, smithy())

# The chains that pages show, on Python 3.11, 3.12 and 3.13. Whoever makes them cheaper
# lowers the figures: a test that is given 0 fails with what there is now. Memory comes
# and goes by 80 bytes a call, with the set in which asyncio keeps its tasks.
GOOD = (200,)
MOST_BYTECODES = [
    pytest.param(readme, GOOD, (1303, 1232, 1207), id="README"),
    pytest.param(readme, FLAKY, (5005, 4728, 4660), id="README, 503 503 200"),
    pytest.param(standard, GOOD, (1512, 1425, 1404), id="standard"),
    pytest.param(smithy_chain, GOOD, (1810, 1685, 1679), id="Smithy"),
    pytest.param(smithy_chain, FLAKY, (8464, 7817, 7857), id="Smithy, 503 503 200"),
]
MOST_BYTES = [
    pytest.param(readme, (2450, 2450, 2470), id="README"),
    pytest.param(standard, (2780, 2700, 2720), id="standard"),
]
MOST_FUNCTION_CALLS = [
    pytest.param(chain, 24, id="empty chain"),
    pytest.param(readme, 48, id="README"),
    pytest.param(standard, 60, id="standard"),
]
NEWER = 1.1
"""So many times the figure for 3.13 is the one for what comes after it."""


def most_here(figures):
    """Return the figure for the Python that runs."""
    minor = sys.version_info.minor
    return figures[minor - 11] if minor <= 13 else NEWER * figures[-1]


class FunctionCalls:
    """Counts the calls of Python functions, resumed coroutines among them."""

    def __init__(self):
        self.number = 0

    def _count(self, frame, event, argument):
        self.number += event == "call"

    def start(self):
        sys.setprofile(self._count)

    def stop(self):
        sys.setprofile(None)

    @contextmanager
    def counted(self):
        gc.collect()
        gc.disable()  # what it finalizes would be counted where it comes by chance
        self.start()
        try:
            yield
        finally:
            self.stop()
            gc.enable()


@pytest.fixture
def calls():
    """A counter of function calls, which is off in the end."""
    calls = FunctionCalls()
    yield calls
    calls.stop()


def retrying():
    strategy = RetryStrategy.failsafe(Backoff.without_delay())
    return RetryingClient.new_decorator(strategy, max_total_attempts=MANY + 1)


def logging_off():
    logger = logging.getLogger("tests.cost")
    logger.setLevel(logging.CRITICAL)
    return LoggingClient.new_decorator(logger)


def session_with(*decorators):
    return connected(None, *decorators)


async def get(session):
    async with session.get(ADDRESS) as response:
        return response.status


async def cost_of_a_call(open_chain):
    """Return how many functions a successful call calls, when all is warmed up."""
    numbers = []
    with stubbed():
        async with open_chain() as call:
            await call(ADDRESS)
            # What else a process does now and then can only add to a count.
            for _ in range(3):
                calls = FunctionCalls()
                with calls.counted():
                    await call(ADDRESS)
                numbers.append(calls.number)
    return min(numbers)


@pytest.mark.parametrize(("open_chain", "at_most"), MOST_FUNCTION_CALLS)
async def test_a_chain_adds_few_function_calls(open_chain, at_most):
    """A call that succeeds at once needs no more than it did."""
    added = await cost_of_a_call(open_chain) - await cost_of_a_call(bare)

    assert 0 < added <= at_most


@pytest.mark.virtual_time
@pytest.mark.parametrize(("open_chain", "statuses", "at_most"), MOST_BYTECODES)
async def test_a_call_runs_few_bytecodes(open_chain, statuses, at_most):
    """One that succeeds at once, or after two failures, needs no more than it did."""
    counts = await bytecodes_of_a_call(open_chain, statuses)

    assert 0 < counts.total() <= most_here(at_most)


async def test_a_further_decorator_adds_its_own_calls_only():
    """An execute each; around a foreign one also what the deadline cuts it by."""

    @client_decorator
    async def function(delegate, ctx, request):
        return await delegate.execute(ctx, request)

    costs = [
        await cost_of_a_call(partial(chain, *[each] * 7))
        - await cost_of_a_call(partial(chain, each))
        for each in (DecoratingClient, function)
    ]

    # From Python 3.12 on a comprehension is no function.
    assert [6, 54 if sys.version_info < (3, 12) else 48] == costs


class BusyServer:
    """Answers 503, and looks at what the first attempt costs from a given one on."""

    def __init__(self, calls, *attempts):
        self._calls = calls
        self._attempts = attempts
        self.costs = []

    def __call__(self, delegate):
        return self

    async def execute(self, ctx, request):
        if ctx.attempt - 1 in self._attempts:
            self._calls.stop()
            _, peak = tracemalloc.get_traced_memory()
            self.costs.append((self._calls.number, peak - self._before))
        response = new_response(request, 503)
        if ctx.attempt in self._attempts:
            self._before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            self._calls.number = 0
            self._calls.start()
        return response


@pytest.mark.slow
async def test_an_attempt_costs_the_same_however_many_came_before(calls):
    """Neither its function calls nor what it allocates grow with the attempts."""
    # From the 101st on there is one that is not kept any more.
    server = BusyServer(calls, 20 * FEW, MANY)
    async with session_with(server, retrying(), logging_off()) as session:
        gc.disable()  # what it finalizes would be counted where it comes by chance
        tracemalloc.start()
        try:
            await get(session)
        finally:
            tracemalloc.stop()
            gc.enable()
    (few_calls, few_bytes), (many_calls, many_bytes) = server.costs

    assert few_calls == many_calls
    assert many_bytes <= few_bytes + 4096


@asynccontextmanager
async def calls_in_flight(number, open_chain=readme):
    """Let so many calls wait for their answers, which come when the block ends."""
    gate = Gate(number)
    with stubbed(gate):
        async with open_chain() as call:
            tasks = [asyncio.ensure_future(call(ADDRESS)) for _ in range(number)]
            await gate.full.wait()
            yield
            gate.open()
            await asyncio.gather(*tasks)


async def bytes_held_by(number, open_chain=readme):
    """Return what each of so many calls holds while it waits for its answer."""
    async with calls_in_flight(1, open_chain):
        pass  # what is made once is there
    gc.collect()
    tracemalloc.start()
    try:
        async with calls_in_flight(number, open_chain):
            held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return held / number


async def test_a_call_costs_the_same_however_many_are_under_way():
    """A call of thousands at once costs what one of ten does."""

    async def cost_of(number):
        calls = FunctionCalls()
        with calls.counted():
            async with calls_in_flight(number):
                pass
        return calls.number / number

    assert await cost_of(MANY) <= await cost_of(FEW)


@pytest.mark.slow
async def test_a_call_under_way_takes_the_same_memory_however_many_there_are():
    """A call of thousands holds what one of a hundred does."""
    assert await bytes_held_by(MANY) <= 1.1 * await bytes_held_by(100)


@pytest.mark.slow
@pytest.mark.skipif(sys.gettrace() is not None, reason="frames are larger when traced")
@pytest.mark.parametrize(("open_chain", "at_most"), MOST_BYTES)
async def test_a_call_under_way_takes_little_memory(open_chain, at_most):
    """Beside a bare one it holds no more than it did."""
    added = await bytes_held_by(MANY, open_chain) - await bytes_held_by(MANY, bare)

    assert 0 < added <= most_here(at_most)


@pytest.mark.parametrize("step", [0.0, 0.001, 0.3, 100.0])
def test_an_event_of_a_breaker_costs_the_same_however_many_came_before(step):
    """Counting never looks at earlier events again, whatever time lies between."""
    now = 0.0
    breaker = CircuitBreaker(failure_rate_threshold=1.0, clock=lambda: now)

    def count(events):
        nonlocal now
        for number in range(events):
            now += step
            permit = breaker.try_request()
            (breaker.on_failure if number % 3 else breaker.on_success)(permit)

    few = lines_run(lambda: count(FEW)) / FEW
    many = lines_run(lambda: count(MANY)) / MANY

    assert many <= few * 1.2


@pytest.mark.parametrize("hosts", [1, 500])
@pytest.mark.parametrize("new_budget", [RetryBudget, RetryBudget.per_host])
async def test_asking_a_budget_costs_the_same_however_many_asked_before(
    new_budget, hosts
):
    """One that is asked by many calls, for many hosts, is as quick as a new one."""
    budget = new_budget(brake_after=None)
    contexts = [http(f"http://host{host}.example/") for host in range(hosts)]

    def ask(times):
        for number in range(times):
            ctx = contexts[number % hosts]
            budget.on_failure(ctx, None)
            if budget.acquire(ctx, None):
                budget.release(ctx)
            budget.on_success(ctx)

    few = lines_run(lambda: ask(FEW)) / FEW
    many = lines_run(lambda: ask(MANY)) / MANY

    assert many <= few * 1.1


def test_asking_a_quota_costs_the_same_however_many_asked_before():
    """The quota of the standard mode does not remember whom it has paid for."""
    quota = StandardRetryQuota()
    error = CallError("503", fault="server")

    def ask(times):
        for _ in range(times):
            quota.release(release_amount=quota.acquire(error=error))

    few = lines_run(lambda: ask(FEW)) / FEW
    many = lines_run(lambda: ask(MANY)) / MANY

    assert many <= few * 1.1
