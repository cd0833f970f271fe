"""Series of circuit breakers, limits and budgets, in registries and processes."""

import os
import subprocess
import sys

import pytest
from chains import session
from command_line import needs_posix

from aioretry_smithy import CircuitBreaker, CircuitBreakerClient, CircuitState

pytest.importorskip("prometheus_client")
import gc
import weakref

import pytest
from chains import in_threads
from monitored import RETRYING, at, session_of
from prometheus_client import CollectorRegistry, Counter, multiprocess

from aioretry_smithy import RetryBudget
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
