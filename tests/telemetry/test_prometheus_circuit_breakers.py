"""Series of circuit breakers, also of several processes."""

import os
import subprocess
import sys

import pytest
from chains import session
from command_line import needs_posix

from aioretry_smithy import CircuitBreaker, CircuitBreakerClient, CircuitState

pytest.importorskip("prometheus_client")
from monitored import at
from prometheus_client import multiprocess

from aioretry_smithy.prometheus import CircuitBreakerMetrics


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
