"""Metrics show hedges, at any place in the chain."""

from chains import after, retrying
from races import hedging, race

from aioretry_smithy import RetryBudget, RetryStrategy
from aioretry_smithy.prometheus import MetricsClient

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


async def test_hedges_are_counted_by_call(registry):
    """How many were sent, how many won and how many a limiter refused."""
    metrics = MetricsClient.new_decorator(registry)
    budget = RetryBudget(capacity=2.0)
    hedges = hedging(0.5, max_hedges=2, limiter=budget)
    answers = [after(9.0, 503), 503, after(0.25, 503), 503, 200]
    await race(answers, metrics, hedges, RETRYING, metrics)

    names = "hedges_total", "hedges_won_total", "hedges_refused_total"
    assert {
        ("hedges_total", "GET"): 2,
        ("hedges_refused_total", "GET"): 1,
    } == series(registry, *names)


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
