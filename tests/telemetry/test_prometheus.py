"""Which series there are, what they count, and how many they can become."""

import asyncio
import logging
from contextlib import suppress
from itertools import repeat

import aiohttp
import pytest
from chains import Always, after, retrying, session, twice
from yarl import URL

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    RetryStrategy,
    client_decorator,
    new_response,
    request_options,
)

pytest.importorskip("prometheus_client")
from monitored import HOST, RETRYING, at, measure, session_of
from prometheus_client import Counter, generate_latest
from races import hedging, race

from aioretry_smithy.prometheus import CircuitBreakerMetrics, MetricsClient

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)


async def measure_cancelled(registry, seconds, *answers, **settings):
    """Make one call that is given up so much later."""
    async with session_of(registry, *answers, **settings) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(seconds):
                await client.get("/")


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


@pytest.mark.slow
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


RETRYING = retrying(0.25, max_total_attempts=2)


def series(registry, *names):
    """Return series by name and by their last label, without those that are 0."""
    return {
        (sample.name.removeprefix("aioretry_smithy_"), [*sample.labels.values()][-1]): (
            sample.value
        )
        for metric in registry.collect()
        for sample in metric.samples
        if sample.value and sample.name.removeprefix("aioretry_smithy_") in names
    }


async def test_a_hedge_that_wins_is_counted(registry):
    """And the one that is superseded is an attempt of its own kind, but no retry."""
    metrics = MetricsClient.new_decorator(registry)
    chain = metrics, hedging(0.5), RETRYING, metrics
    await race([after(0.1, 503), 503, after(9.0, 200), 200], *chain)

    assert {
        ("hedges_total", "GET"): 2,
        ("attempts_total", "5xx"): 2,
        ("hedges_won_total", "GET"): 1,
        ("attempts_total", "superseded"): 1,
        ("attempts_total", "2xx"): 1,
        ("retries_total", "superseded"): 1,
        ("call_duration_seconds_count", "none"): 1,
    } == series(
        registry,
        "hedges_total",
        "hedges_won_total",
        "hedges_refused_total",
        "attempts_total",
        "retries_total",
        "call_duration_seconds_count",
    )


async def test_without_retries_hedges_are_attempts_of_a_call(registry):
    """Metrics outside of the hedges see calls."""
    metrics = MetricsClient.new_decorator(registry)
    await race([after(9.0, 200), 200], metrics, hedging(0.5), metrics)

    names = "hedges_won_total", "attempts_total", "retries_total"
    assert {
        ("hedges_won_total", "GET"): 1,
        ("attempts_total", "superseded"): 1,
        ("attempts_total", "2xx"): 1,
        ("call_duration_seconds_count", "none"): 1,
    } == series(registry, *names, "call_duration_seconds_count")


async def test_metrics_between_retries_and_hedges_see_attempts(registry):
    """Each with the outcome of the request that counts."""
    metrics = MetricsClient.new_decorator(registry)
    answers = [503, 503, after(9.0, 200), 200]
    await race(answers, hedging(0.5), metrics, RETRYING)

    assert {
        ("attempts_total", "5xx"): 1,
        ("attempts_total", "2xx"): 1,
        ("retries_total", "2xx"): 1,
    } == series(
        registry, "attempts_total", "retries_total", "call_duration_seconds_count"
    )


async def test_chains_without_hedges_have_no_such_series(registry):
    """Only the names are there."""
    metrics = MetricsClient.new_decorator(registry)
    await race([200], metrics, retrying(RetryStrategy.never()), metrics)

    assert [] == [
        sample
        for metric in registry.collect()
        for sample in metric.samples
        if "hedges" in sample.name
    ]
