"""Series of circuit breakers, limits and budgets, in registries and processes."""

import os
import subprocess
import sys

import pytest
from chains import session
from command_line import needs_posix

from aioretry_smithy import CircuitBreaker, CircuitBreakerClient, CircuitState

pytest.importorskip("prometheus_client")
import asyncio
import gc
import weakref

import pytest
from chains import after, in_threads
from monitored import RETRYING, at, measure, session_of
from prometheus_client import CollectorRegistry, Counter, multiprocess

from aioretry_smithy import (
    Backoff,
    ConcurrencyLimit,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
)
from aioretry_smithy.prometheus import (
    CircuitBreakerMetrics,
    ConcurrencyLimitMetrics,
    MetricsClient,
    RetryBudgetMetrics,
)


@pytest.fixture
def states(values):
    """A function that returns the states of a circuit breaker."""

    def read(name="b"):
        return {
            state
            for (breaker, state), value in values("circuit_breaker_state").items()
            if breaker == name and value
        }

    return read


def test_circuit_breaker_shows_one_state(registry, states, values):
    """Exactly one of the states is 1, and each change of state is counted."""
    breaker = CircuitBreaker("b", listeners=[CircuitBreakerMetrics(registry)])
    for state in (CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.OPEN):
        breaker.enter_state(state)

        assert {state.value} == states()
    assert {
        ("b", "closed"): 0,
        ("b", "open"): 2,
        ("b", "half_open"): 1,
        ("b", "forced_open"): 0,
    } == values("circuit_breaker_transitions_total")


def test_circuit_breaker_shows_with_its_first_event(registry, states, values):
    """A circuit breaker that was never open is there, closed, with counters at 0."""
    breaker = CircuitBreaker("b", listeners=[CircuitBreakerMetrics(registry)])

    assert {} == values("circuit_breaker_state")
    breaker.on_success(breaker.try_request())
    breaker.on_success(breaker.try_request())
    assert {"closed"} == states()
    assert {("b",): 0} == values("circuit_breaker_rejections_total")


def test_new_circuit_breaker_of_an_old_name_is_shown(registry, states):
    """A session that is built anew does not show the state of the one before."""
    metrics = CircuitBreakerMetrics(registry)
    CircuitBreaker("b", listeners=[metrics]).enter_state(CircuitState.OPEN)
    rebuilt = CircuitBreaker("b", listeners=[metrics])
    rebuilt.on_success(rebuilt.try_request())

    assert {"closed"} == states()


@pytest.mark.slow
async def test_host_whose_circuit_breaker_was_thrown_out_is_shown_again(
    registry, states
):
    """More hosts than are kept: the one that comes back begins with a closed one."""
    metrics = CircuitBreakerMetrics(registry)
    made = []

    def new_breaker(host):
        made.append(CircuitBreaker(host, listeners=[metrics]))
        return made[-1]

    decorator = CircuitBreakerClient.new_per_host_decorator(new_breaker)
    async with session([200] * 1027, decorator) as client:
        await client.get("http://0.example/")
        made[0].enter_state(CircuitState.FORCED_OPEN)
        assert {"forced_open"} == states("0.example:80")
        for number in (*range(1, 1026), 0):
            await client.get(f"http://{number}.example/")

    assert {"closed"} == states("0.example:80")


def test_circuit_breakers_share_the_metrics_of_a_registry(registry, states, values):
    """Two listeners are one, and each circuit breaker has its own series."""
    for name in ("b", "c"):
        breaker = CircuitBreaker(name, listeners=[CircuitBreakerMetrics(registry)])
        breaker.enter_state(CircuitState.FORCED_OPEN)
        breaker.try_request()
    breaker.enter_state(CircuitState.CLOSED)

    assert {("b",): 1, ("c",): 1} == values("circuit_breaker_rejections_total")
    assert {"forced_open"} == states("b")
    assert {"closed"} == states("c")


@pytest.mark.slow
def test_names_of_circuit_breakers_are_bounded(registry, values):
    """Beyond the limit there are sums, and no state that would be nobody's."""
    metrics = CircuitBreakerMetrics(registry)
    for number in range(1100):
        breaker = CircuitBreaker(f"b{number}", listeners=[metrics])
        breaker.on_success()
        breaker.enter_state(CircuitState.FORCED_OPEN)
        breaker.try_request()

    assert 1024 * 4 == len(values("circuit_breaker_state"))
    rejections = values("circuit_breaker_rejections_total")
    assert 1025 == len(rejections)
    assert 76 == rejections["_OTHER",]


WORKERS = """
import asyncio, os
from aioretry_smithy import *
from aioretry_smithy.prometheus import *
from aioretry_smithy.testing import ScriptedTransport

async def work(state, capacity):
    breaker = CircuitBreaker("b", listeners=[CircuitBreakerMetrics()])
    breaker.enter_state(CircuitState(state))
    budget = RetryBudget("r", capacity=capacity, listeners=[RetryBudgetMetrics()])
    metrics = MetricsClient.new_decorator()
    retrying = RetryingClient.new_decorator(
        RetryStrategy.on_server_error_status(Backoff.without_delay()), limiter=budget
    )
    builder = SessionBuilder("http://example.com")
    for decorator in (ScriptedTransport([503, 200]), metrics, retrying, metrics):
        builder.decorator(decorator)
    async with builder.build() as session:
        await session.get("/")

for state, capacity in ("open", 5), ("open", 3), ("closed", 8):
    if not (worker := os.fork()):
        asyncio.run(work(state, capacity))
        os._exit(0)
    _, status = os.waitpid(worker, 0)
    print(worker, status)
"""


def run_workers(folder):
    """Make a call in each of three processes, forked as servers do, and return them."""
    process = subprocess.run(
        [sys.executable, "-c", WORKERS],
        capture_output=True,
        check=True,
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)},
    )
    numbers = [int(number) for number in process.stdout.split()]
    assert [0, 0, 0] == numbers[1::2]
    return numbers[::2]


@pytest.mark.slow
@needs_posix("workers that are forked")
def test_processes_are_summed_up(tmp_path, registry, values, states):
    """Where many processes serve, counters and states add up; tokens are the least."""
    workers = run_workers(tmp_path)
    multiprocess.MultiProcessCollector(registry, path=str(tmp_path))

    assert 6 == sum(values("attempts_total").values())
    assert 3 == sum(values("retries_total").values())
    assert {at("none"): 3} == values("call_duration_seconds_count")
    assert {
        ("b", "open"): 2,
        ("b", "closed"): 1,
        ("b", "half_open"): 0,
        ("b", "forced_open"): 0,
    } == values("circuit_breaker_state")
    # 5, 3 and 8 paid for a retry each, and got a tenth for the success.
    assert {("r",): pytest.approx(2.1)} == values("retry_budget_tokens")

    for worker in workers[:2]:
        multiprocess.mark_process_dead(worker, path=str(tmp_path))
    assert 6 == sum(values("attempts_total").values())
    assert {"closed"} == states()
    assert {("r",): pytest.approx(7.1)} == values("retry_budget_tokens")


@pytest.fixture
def of_limits(registry):
    """A function that returns values of the series of limits by their names."""

    def read(*series):
        samples = [
            sample
            for metric in registry.collect()
            for sample in metric.samples
            if not sample.name.endswith("_created")
        ]
        return [
            {
                sample.labels["concurrency_limit"]: sample.value
                for sample in samples
                if sample.name == f"aioretry_smithy_concurrency_limit_{name}"
            }
            for name in series
        ]

    return read


async def test_concurrency_limits_of_a_session_are_measured(registry, of_limits):
    """Whenever Prometheus asks, from the first request on."""
    metrics = ConcurrencyLimitMetrics(registry)
    decorator = ConcurrencyLimitingClient.new_per_host_decorator(
        lambda key: ConcurrencyLimit.fixed(1, name=key, listeners=[metrics]),
        max_pending=1,
    )
    all_series = "limit", "in_flight", "pending", "refusals_total"
    assert [{}] * 4 == of_limits(*all_series)

    async with session([after(1.0, 200), 200, 200], decorator) as client:
        calls = [asyncio.create_task(client.get("http://a/"))]
        await asyncio.sleep(0.25)
        first = of_limits(*all_series)
        calls += [asyncio.create_task(client.get("http://a/")) for _ in range(2)]
        await asyncio.sleep(0.25)
        then = of_limits(*all_series)
        await asyncio.wait(calls)

    assert [{"a:80": 1}, {"a:80": 1}, {"a:80": 0}, {"a:80": 0}] == first
    assert [{"a:80": 1}] * 4 == then
    assert isinstance(calls[2].exception(), ConcurrencyLimitError)


def test_concurrency_limit_that_is_gone_shows_nothing(registry, of_limits):
    """Its refusals stay, as counters do."""
    metrics = ConcurrencyLimitMetrics(registry)
    limit = ConcurrencyLimit.fixed(1, name="orders")
    metrics.on_refused(limit, None)
    del limit
    gc.collect()

    assert [{}, {"orders": 1}] == of_limits("in_flight", "refusals_total")


def test_last_concurrency_limit_of_a_name_is_shown(registry, of_limits):
    """Of two with one name the one that had the last event."""
    metrics = ConcurrencyLimitMetrics(registry)
    limits = [
        ConcurrencyLimit.fixed(places, name="orders", listeners=[metrics])
        for places in (3, 5)
    ]
    for each in limits:
        each._try_enter(0.0)

    assert [{"orders": 5}] == of_limits("limit")


def limited(budget):
    """Retry at the cost of a budget."""
    strategy = RetryStrategy.on_server_error_status(Backoff.fixed(0.5))
    return (RetryingClient.new_decorator(strategy, limiter=budget),)


async def test_retry_budget_shows_its_tokens(registry, values):
    """The gauge follows the budget, and refusals are counted."""
    listeners = [RetryBudgetMetrics(registry)]
    budget = RetryBudget("orders", capacity=1, deposit=0.5, listeners=listeners)
    async with session_of(registry, 503, 503, 200, around=limited(budget)) as client:
        await client.get("/")

        assert {("orders",): 0.0} == values("retry_budget_tokens")
        await client.get("/")
    assert {("orders",): 0.5} == values("retry_budget_tokens")
    assert {("orders",): 1} == values("retry_budget_refusals_total")
    assert {at("limiter"): 1, at("none"): 1} == values("call_duration_seconds_count")


async def test_budget_refused_before_anything_else_is_there(registry, values):
    """A brake may refuse the very first retry, when all tokens are left."""
    listeners = [RetryBudgetMetrics(registry)]
    budget = RetryBudget("orders", brake_after=1, listeners=listeners)
    await measure(registry, 503, around=limited(budget))

    assert {("orders",): 10.0} == values("retry_budget_tokens")
    assert {("orders",): 1} == values("retry_budget_refusals_total")


def test_names_of_budgets_are_bounded(registry, values):
    """Beyond the limit refusals have a sum, and tokens none."""
    metrics = RetryBudgetMetrics(registry)
    for number in range(1100):
        metrics.on_retry_refused(RetryBudget(f"b{number}"), None)

    assert 1024 == len(values("retry_budget_tokens"))
    assert 76 == values("retry_budget_refusals_total")["_OTHER",]


async def test_each_registry_has_attempts_and_calls_of_its_own(registry, values):
    """Two registries in one chain: neither takes the other for its inner half."""
    registries = registry, CollectorRegistry()
    decorators = [MetricsClient.new_decorator(each) for each in registries]
    chain = *decorators, RETRYING, *decorators
    async with session([503, 200], *chain) as client:
        await client.get("http://example.com")

    for each in registries:
        assert {at("5xx"): 1, at("2xx"): 1} == values("attempts_total", each)
        assert {at("5xx"): 0, at("2xx"): 1} == values("retries_total", each)
        assert {at("none"): 1} == values("call_duration_seconds_count", each)


async def test_sessions_share_the_metrics_of_a_registry(registry, values):
    """A decorator made again does not clash with the first one."""
    for _ in range(2):
        async with session_of(registry, 200) as session:
            await session.get("/")

    assert {at("2xx"): 2} == values("attempts_total")


def test_metrics_are_made_once_by_many_threads(registry):
    """Threads that make decorators at the same time share the metrics too."""
    made = []
    in_threads(lambda: made.append(MetricsClient.new_decorator(registry)))

    assert 8 == len(made)


def test_registry_can_be_freed():
    """Nothing of ours keeps a registry alive."""
    registry = CollectorRegistry()
    gone = weakref.ref(registry)
    kept = [MetricsClient.new_decorator(registry)]
    kept += [listener(registry) for listener in LISTENERS]
    del registry
    gc.collect()

    assert gone() is None
    assert kept


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (MetricsClient.new_decorator, "call_duration_seconds"),
        (CircuitBreakerMetrics, "circuit_breaker_rejections"),
        (ConcurrencyLimitMetrics, "concurrency_limit_in_flight"),
        (RetryBudgetMetrics, "retry_budget_refusals"),
    ],
)
def test_name_that_is_taken_is_an_error(registry, make, name):
    """Another's metric stays, ours come whole or not at all, and may come later."""
    other = Counter(f"aioretry_smithy_{name}", "Another's.", registry=registry)

    with pytest.raises(ValueError, match="aioretry_smithy"):
        make(registry)

    assert [other] == list(registry._collector_to_names)
    registry.unregister(other)
    make(registry)


LISTENERS = [CircuitBreakerMetrics, ConcurrencyLimitMetrics, RetryBudgetMetrics]


@pytest.mark.parametrize("make", [MetricsClient.new_decorator, *LISTENERS])
@pytest.mark.parametrize("registry", [None, "registry", CollectorRegistry, 1])
def test_what_is_no_registry_is_refused(make, registry):
    """The error names the argument where the object is made."""
    with pytest.raises(ValueError, match="registry: .*a prometheus_client registry"):
        make(registry)
