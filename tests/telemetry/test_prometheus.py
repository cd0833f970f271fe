"""Which series there are, what they count, and how many they can become."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import weakref
from contextlib import suppress
from itertools import repeat

import aiohttp
import pytest
from chains import Always, after, in_threads, retrying, session, twice
from yarl import URL

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    RetryBudget,
    RetryConfig,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
    new_response,
    request_options,
)

pytest.importorskip("prometheus_client")

from prometheus_client import (
    CollectorRegistry,
    Counter,
    generate_latest,
    multiprocess,
)

from aioretry_smithy.prometheus import (
    CircuitBreakerMetrics,
    ConcurrencyLimitMetrics,
    MetricsClient,
    RetryBudgetMetrics,
)

HOST = "example.com:80"
RETRYING = RetryingClient.new_decorator(
    RetryStrategy.on_server_error_status(Backoff.fixed(0.5)), max_total_attempts=3
)
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)


def session_of(registry, *answers, around=(RETRYING,), url="http://example.com"):
    """Build a session that is measured on both sides of other decorators."""
    metrics = MetricsClient.new_decorator(registry)
    return session(answers, metrics, *around, metrics, base_url=url)


async def measure(registry, *answers, **settings):
    """Make one call that is measured on both sides, whatever comes of it."""
    async with session_of(registry, *answers, **settings) as client:
        await asyncio.gather(client.get("/"), return_exceptions=True)


async def measure_cancelled(registry, seconds, *answers, **settings):
    """Make one call that is given up so much later."""
    async with session_of(registry, *answers, **settings) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(seconds):
                await client.get("/")


def at(*labels):
    return (HOST, "GET", *labels)


@client_decorator
async def broken(delegate, ctx, request):
    raise KeyError(request.method)


@client_decorator
async def linger(delegate, ctx, request):
    await delegate.execute(ctx, request)
    await asyncio.sleep(99)


@client_decorator
async def fall_back(delegate, ctx, request):
    await delegate.execute(ctx, request)
    return new_response(request, 200)


@client_decorator
async def derive_twice(delegate, ctx, request):
    """Send again after a 503, as programs without a RetryingClient do."""
    response = await delegate.execute(ctx.derive(request), request)
    if response.status == 503:
        response = await delegate.execute(ctx.derive(request), request)
    return response


TWICE = {"max_total_attempts": 2}
CALLS = {
    "attempts and retries": (
        *([503, 503, 200], [RETRYING]),
        {"5xx": 2, "2xx": 1},
        {"5xx": 1, "2xx": 1},
        {"none": 1},
    ),
    # An attempt without a status is told from the statuses.
    "failed attempt": (
        *([OSError(), 200], [RETRYING]),
        {"error": 1, "2xx": 1},
        {"error": 0, "2xx": 1},
        {"none": 1},
    ),
    # A call that another decorator ends never reached the retrying client.
    "error outside of the retries": ([], [RETRYING, broken], {}, {}, {"error": 1}),
    # A decorator that sends twice in one attempt makes two, one of them a retry.
    "each pass is an attempt": (
        *([401, 503, 401, 200], [twice, RETRYING]),
        {"4xx": 2, "5xx": 1, "2xx": 1},
        {"4xx": 1, "5xx": 1, "2xx": 1},
        {"none": 1},
    ),
    # A decorator around the retries does not make a first attempt of the next one.
    "second pass through the retries": (
        *([401, 200], [RETRYING, twice]),
        {"4xx": 1, "2xx": 1},
        {"4xx": 0, "2xx": 1},
        {"none": 1},
    ),
    "retries of another decorator": (
        *([503, 200], [derive_twice]),
        {"5xx": 1, "2xx": 1},
        {"5xx": 0, "2xx": 1},
        {"none": 1},
    ),
    # A call that ends with an error is no success, with any retrier.
    "retries of another decorator in vain": (
        *([503, 503], [derive_twice]),
        {"5xx": 2},
        {"5xx": 1},
        {"error": 1},
    ),
    # The caller got an answer, though the retries ended with none.
    "fallback": (
        *([503] * 3, [RETRYING, fall_back]),
        {"5xx": 3},
        {"5xx": 2},
        {"none": 1},
    ),
    # An error inside a 200 is no success, though its attempts have that status.
    "answer that was wanted again": (
        *([200, 200], [retrying(Always(), **TWICE)]),
        {"2xx": 2},
        {"2xx": 1},
        {"max_total_attempts": 1},
    ),
}


@pytest.mark.parametrize(
    ("answers", "around", "attempts", "retries", "calls"), CALLS.values(), ids=CALLS
)
async def test_call_is_counted(
    registry, values, answers, around, attempts, retries, calls
):
    """Each attempt by its own outcome, retries without the first one, the call once."""
    await measure(registry, *answers, around=around)

    assert {at(each): n for each, n in attempts.items()} == values("attempts_total")
    assert {at(each): n for each, n in retries.items()} == values("retries_total")
    name = "call_duration_seconds_count"
    assert {at(each): n for each, n in calls.items()} == values(name)


async def test_durations_are_those_of_attempts_and_of_calls(registry, values):
    """A call takes as long as its attempts and the waits between them."""
    await measure(registry, after(0.2, 503), after(0.1, 200))

    name = "attempt_duration_seconds"
    assert {at("5xx"): 1, at("2xx"): 1} == values(f"{name}_count")
    assert values(f"{name}_sum") == pytest.approx({at("5xx"): 0.2, at("2xx"): 0.1})
    assert {at("none"): 1} == values("call_duration_seconds_count")
    assert values("call_duration_seconds_sum") == pytest.approx({at("none"): 0.8})


@pytest.mark.parametrize("name", ["attempt", "call"])
async def test_buckets_are_those_of_the_conventions(registry, values, name):
    """OpenTelemetry's limits, so that both ways to measure can be compared."""
    await measure(registry, 200)

    found = values(f"{name}_duration_seconds_bucket")
    assert [*map(float, BUCKETS), float("inf")] == [float(key[-1]) for key in found]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([200], "none"),
        ([404], "no_retry"),
        ([503] * 3, "max_total_attempts"),
        ([503, after(99, 200)], "deadline"),
        ([(503, {"Retry-After": "99"}, b"")], "retry_after_too_long"),
    ],
)
async def test_calls_are_sorted_by_why_they_stopped(registry, values, answers, reason):
    """The label has the value of the stop reason, and one of its own for success."""
    with request_options(response_timeout=5.0):
        await measure(registry, *answers)

    assert {at(reason): 1} == values("call_duration_seconds_count")


async def test_cancelled_call_is_neither_success_nor_error(registry, values):
    """A call or attempt that the caller gave up is counted apart."""
    await measure_cancelled(registry, 2.0, after(99, 200))

    assert {at("cancelled"): 1} == values("attempts_total")
    assert {at("cancelled"): 2.0} == values("call_duration_seconds_sum")


async def test_call_cancelled_while_it_waits_has_no_further_attempt(registry, values):
    """Cancellation between two attempts is one of the call alone."""
    await measure_cancelled(registry, 0.25, 503)

    assert {at("5xx"): 1} == values("attempts_total")
    assert {at("cancelled"): 1} == values("call_duration_seconds_count")


async def test_cancellation_wins_over_the_reason_of_an_earlier_pass(registry, values):
    """A decorator that goes on after the retries may be cancelled too."""
    await measure_cancelled(registry, 1.0, 404, around=(RETRYING, linger))

    assert {at("cancelled"): 1} == values("call_duration_seconds_count")


async def test_open_circuit_is_a_refusal(registry, values):
    """Outside of the circuit breaker an attempt shows that it was not sent."""
    breaker = CircuitBreaker("b", listeners=[CircuitBreakerMetrics(registry)])
    breaker.enter_state(CircuitState.FORCED_OPEN)
    metrics = MetricsClient.new_decorator(registry)
    chain = CircuitBreakerClient.new_decorator(breaker), metrics, RETRYING, metrics
    async with session([], *chain) as client:
        await asyncio.gather(client.get("http://example.com"), return_exceptions=True)

    assert {at("refused"): 1} == values("attempts_total")
    assert {at("refused"): 1} == values("call_duration_seconds_count")
    assert {("b",): 1} == values("circuit_breaker_rejections_total")


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


async def test_subclass_outside_sees_calls(registry, values):
    """A subclass outside alone still counts calls there."""

    class Ours(MetricsClient):
        """Has something to add."""

    chain = (each.new_decorator(registry) for each in (MetricsClient, Ours))
    async with session([200], *chain) as client:
        await client.get("http://example.com")

    assert {at("2xx"): 1} == values("attempts_total")
    assert {at("none"): 1} == values("call_duration_seconds_count")


async def test_call_that_nothing_retries_is_one_attempt(registry, values):
    """Put in once, without a retrying client, it counts attempts."""
    async with session([200], MetricsClient.new_decorator(registry)) as client:
        await client.get("http://example.com")

    assert {at("2xx"): 1} == values("attempts_total")
    assert {at("2xx"): 0} == values("retries_total")
    assert {} == values("call_duration_seconds_count")


async def test_calls_that_are_retried_further_out_say_why_they_stopped(
    registry, values
):
    """Inside another decorator that retries, calls end that are attempts there."""
    metrics, inner = MetricsClient.new_decorator(registry), retrying(Always(), **TWICE)
    async with session([200] * 2, metrics, inner, metrics, derive_twice) as client:
        await client.get("http://example.com")

    assert {at("max_total_attempts"): 1} == values("call_duration_seconds_count")


async def test_no_retry_of_a_block_is_a_reason(registry, values):
    """Settings of a block of code count as those of the client."""
    with request_options(retry=RetryConfig.no_retry()):
        await measure(registry, 503)

    assert {at("no_retry"): 1} == values("call_duration_seconds_count")


async def test_labels_are_bounded(registry, values):
    """No path, query or invented method makes a further series."""
    async with session_of(registry, *repeat(200, 1000)) as session:
        for number in range(1000):
            url = f"/{number}?key={number}#{number}"
            await session.request(f"METHOD{number}", url, params={"page": str(number)})

    labels = (HOST, "_OTHER", "2xx")
    assert {labels: 1000} == values("attempts_total")
    assert {(HOST, "_OTHER", "none"): 1000} == values("call_duration_seconds_count")
    assert b"page" not in generate_latest(registry)
    assert b"METHOD" not in generate_latest(registry)


async def test_hosts_are_bounded(registry, values):
    """A crawler does not fill the memory: hosts from the 1025th on share a series."""
    async with session_of(registry, *repeat(200, 1100), url=None) as session:
        for number in range(1100):
            await session.get(f"http://{number}.example.com/")

    found = values("attempts_total")
    assert 1025 == len(found)
    assert 1 == found["1023.example.com:80", "GET", "2xx"]
    assert 76 == found["_OTHER", "GET", "2xx"]


@pytest.mark.parametrize(
    ("url", "host", "outcome"),
    [
        ("http://[::1]:8080/", "[::1]:8080", "2xx"),
        ("https://user:secret@EXAMPLE.com/", "example.com:443", "2xx"),
        ("http://bücher.example/", "xn--bcher-kva.example:80", "2xx"),
        ("/relative", "", "unsent"),
        ("http://[", "", "unsent"),
        (URL("http://a\ud800b/", encoded=True), r"a\ud800b:80", "2xx"),
        (URL('http://a"b/', encoded=True), 'a"b:80', "2xx"),
    ],
)
async def test_unusual_hosts_can_be_scraped(registry, values, url, host, outcome):
    """The page that Prometheus reads stays whole with any URL."""
    async with session_of(registry, 200, url=None) as session:
        with suppress(aiohttp.InvalidURL):
            await session.get(url)

    assert {(host, "GET", outcome): 1} == values("attempts_total")
    assert b"secret" not in generate_latest(registry)


async def test_calls_at_once_do_not_mix(registry, values):
    """200 calls under way together: every one of them is counted once."""
    answers = [after(0.3, 503)] * 200 + [after(0.1, 200)] * 200
    async with session_of(registry, *answers) as session:
        await asyncio.gather(*(session.get("/") for _ in range(200)))

    assert {at("5xx"): 200, at("2xx"): 200} == values("attempts_total")
    assert {at("5xx"): 0, at("2xx"): 200} == values("retries_total")
    assert values("call_duration_seconds_sum") == pytest.approx({at("none"): 200 * 0.9})


async def test_sessions_share_the_metrics_of_a_registry(registry, values):
    """A decorator made again does not clash with the first one."""
    for _ in range(2):
        async with session_of(registry, 200) as session:
            await session.get("/")

    assert {at("2xx"): 2} == values("attempts_total")


async def test_registries_are_kept_apart(registry, values):
    """Counts in one registry do not show in another."""
    async with session_of(CollectorRegistry(), 200) as session:
        await session.get("/")
    MetricsClient.new_decorator(registry)

    assert {} == values("attempts_total")


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


async def test_error_of_a_metric_changes_nothing(registry, caplog, monkeypatch):
    """A counter that raises is logged, and the caller gets the response."""

    def broken(self, *labels):
        raise OSError("no space left")

    async with session_of(registry, 503, 200) as session:
        monkeypatch.setattr(Counter, "labels", broken)
        with caplog.at_level(logging.WARNING, "aioretry_smithy"):
            response = await session.get("/")

    assert 200 == response.status
    assert "could not record a call" in caplog.text


async def test_describe_says_what_is_seen(registry):
    """The chain shows which of the two places is which."""
    metrics = MetricsClient.new_decorator(registry)
    builder = SessionBuilder().decorator(metrics).decorator(RETRYING).decorator(metrics)

    lines = [line.strip() for line in builder.describe().splitlines()]
    assert "MetricsClient(sees='calls')" == lines[0]
    assert "MetricsClient(sees='attempts')" == lines[2]


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


async def test_strategy_that_raises_is_a_reason(registry, values):
    """An error in the user's code is told from what the server did."""
    strategy = RetryStrategy.on_status(lambda status, cause: cause.nothing)
    await measure(registry, 503, around=(RetryingClient.new_decorator(strategy),))

    assert {at("error"): 1} == values("call_duration_seconds_count")


def test_library_does_not_import_prometheus():
    """Users who do not ask for metrics do not pay for them."""
    code = "import sys, aioretry_smithy; print('prometheus_client' in sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )

    assert "False" == process.stdout.strip()


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
