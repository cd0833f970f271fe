"""Series of retry budgets."""

import pytest

from aioretry_smithy import Backoff, RetryBudget, RetryingClient, RetryStrategy

pytest.importorskip("prometheus_client")
from monitored import at, measure, session_of

from aioretry_smithy.prometheus import RetryBudgetMetrics


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
