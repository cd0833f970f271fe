"""Attempts that go to another of several servers.

Of the cases of endpoints.md (f): 59 to 75, 103; the ruling of case 25.
"""

import asyncio

import aiohttp
import pytest
from balanced import ROUND_ROBIN, Fleet, call, group_of, name_of, out
from chains import SAFELY, after, now, refused, retrying
from functions import delays, logged

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    ConcurrencyLimitingClient,
    OutlierDetection,
    RateLimit,
    RateLimitingClient,
    RetryBudget,
    RetryBudgetListener,
    RetryStrategy,
)

LATER = RetryStrategy.failsafe(Backoff.fixed(0.5))


class TestOrder:
    """Where attempts go."""

    async def test_fourth_begins_the_round_anew(self):
        """Case 61: with those tried least."""
        fleet = Fleet(a=[503, 503, 200], b=503, c=503)
        group = group_of("abc", outlier_detection=None)
        status, _, asked = await logged(fleet, group, retrying(0.5))

        assert (200, "abcabca") == (status, asked)

    async def test_untried_one_that_is_out_is_none(self):
        """Case 59: the tried one is asked again while no other is well."""
        fleet = Fleet(a=[503, 200, 503, 200], b=refused())
        group = group_of("ba")
        async with fleet.session(group, retrying(0.5)) as client:
            await call(client)
            assert {"b": "connect_failures"} == out(group)
            fleet.asked.clear()
            status, log = await call(client)

        assert (200, "aa", 2) == (status, fleet.text, log.total_attempts)


class TestAtOnce:
    """No wait after what did not reach a server."""

    async def test_refused_connection(self):
        """Case 63: with a source of its own, and words."""
        _, log, asked = await logged(
            Fleet(a=refused()), group_of("ab"), retrying(LATER)
        )

        assert ("ab", [(0.0, "next_endpoint")]) == (asked, delays(log))
        assert 0.0 == log.duration
        assert "then at once to the next endpoint" in log.render()

    async def test_twice_a_call(self):
        """Case 64: retries are not used up in no time where all refuse."""
        names = "abcdefghij"
        fleet = Fleet(**dict.fromkeys(names, refused()))
        _, log, asked = await logged(
            fleet, group_of(names), retrying(LATER, max_total_attempts=10)
        )

        assert names == asked
        assert ["next_endpoint"] * 2 + ["backoff"] * 7 == [
            source for _, source in delays(log)
        ]

    async def test_backoff_is_asked_and_counts(self):
        """Only its delay is dropped."""
        strategy = RetryStrategy.failsafe(Backoff.exponential(1.0, 100.0))
        fleet = Fleet(a=refused(), b=refused(), c=503)
        _, log, _ = await logged(fleet, group_of("abcd"), retrying(strategy))

        assert [0.0, 0.0, 4.0] == [delay for delay, _ in delays(log)]

    @pytest.mark.parametrize(
        "failure", [aiohttp.ServerDisconnectedError(), 503, TimeoutError()]
    )
    async def test_not_where_the_server_may_have_seen_it(self, failure):
        """Case 65: it is waited, then elsewhere."""
        _, log, asked = await logged(Fleet(a=failure), group_of("ab"), retrying(LATER))

        assert ("ab", [(0.5, "backoff")]) == (asked, delays(log))

    async def test_switch_counts_when_its_wait_begins(self):
        """A limiter lets a decision be planned twice."""
        fleet = Fleet(**dict.fromkeys("abc", refused()))
        budget = RetryBudget(brake_after=None)
        _, log, _ = await logged(
            fleet,
            group_of("abcd"),
            retrying(LATER, limiter=budget, max_total_attempts=4),
        )

        assert ["next_endpoint", "next_endpoint", "backoff"] == [
            source for _, source in delays(log)
        ]


class TestHints:
    """What servers ask for."""

    async def test_503_that_asks_for_too_long_stops_no_call(self):
        """Case 66: while another one is well."""
        fleet = Fleet(a=(503, {"Retry-After": "3600"}, b""))
        status, _, _ = await logged(fleet, group_of("ab"), retrying(0.5))
        only, log, _ = await logged(
            Fleet(a=(503, {"Retry-After": "3600"}, b"")), group_of("a"), retrying(0.5)
        )

        assert (200, 503, "retry_after_too_long") == (status, only, log.stop_reason)

    async def test_429_is_waited_for(self):
        """It is about the client, whom the other one knows too."""
        fleet = Fleet(a=(429, {"Retry-After": "3"}, b""))
        _, log, asked = await logged(fleet, group_of("ab"), retrying(SAFELY))

        assert ("ab", [(3.0, "retry_after")]) == (asked, delays(log))


class TestLimits:
    """What ends retries ends these too."""

    async def test_budget_pays_one_token_a_switch(self):
        """Case 70: as for any retry."""
        spent = []

        class Counting(RetryBudgetListener):
            def on_tokens_changed(self, budget):
                spent.append(budget.tokens)

        budget = RetryBudget(listeners=[Counting()])
        full = budget.tokens
        fleet = Fleet(a=refused(), b=refused())
        await logged(fleet, group_of("abc"), retrying(LATER, limiter=budget))

        assert [full - 1, full - 2] == spent[:2]

    async def test_deadline_shorter_than_the_wait(self):
        """Case 72: it stops as ever; a switch takes no time."""
        slow = await logged(Fleet(a=503), group_of("ab"), retrying(5.0), timeout=2.0)
        quick = await logged(
            Fleet(a=refused()),
            group_of("ab"),
            retrying(RetryStrategy.failsafe(Backoff.fixed(5.0))),
            timeout=2.0,
        )

        assert (503, "deadline", 0.0) == (slow[0], slow[1].stop_reason, now())
        assert (200, "ab") == (quick[0], quick[2])


class TestKeys:
    """What is kept per service, and what per endpoint."""

    async def test_budget_is_the_services(self):
        """Case 71: one per endpoint would multiply the retries."""
        names = []

        class Named(RetryBudgetListener):
            def on_tokens_changed(self, budget):
                names.append(budget.name)

        fleet = Fleet(a=refused(), b=refused())
        budgets = RetryBudget.per_host(listeners=[Named()])
        group = group_of("abc", name="orders")
        await logged(fleet, group, retrying(LATER, limiter=budgets))

        assert {"orders"} == set(names)

    async def test_rate_is_the_services(self):
        """Case 102: quotas are per account."""
        keys = []

        def rate(key):
            keys.append(key)
            return RateLimit(100, per=1.0)

        decorator = RateLimitingClient.new_per_host_decorator(rate)
        group = group_of("abc", selection=ROUND_ROBIN, name="orders")
        async with Fleet().session(group, decorator, retrying(0.5)) as client:
            for _ in range(6):
                await call(client)

        assert ["orders"] == keys

    async def test_concurrency_is_the_endpoints(self):
        """Case 101: a slow one does not take the places of the others."""
        keys = []

        def limit(key):
            keys.append(key)
            return 1

        decorator = ConcurrencyLimitingClient.new_per_host_decorator(limit)
        fleet = Fleet(a=after(1.0, 200), b=after(1.0, 200))
        group = group_of("ab", selection=ROUND_ROBIN)
        async with fleet.session(group, decorator, retrying(0.5)) as client:
            await asyncio.gather(*(call(client) for _ in range(4)))

        assert ["a.example:80", "b.example:80"] == sorted(keys)
        assert 2.0 == now()

    async def test_keys_outside_are_the_groups_name(self):
        """No endpoint is chosen there yet."""
        keys = []

        def breaker(key):
            keys.append(key)
            return CircuitBreaker(key)

        decorator = CircuitBreakerClient.new_per_host_decorator(breaker)
        group = group_of("ab", name="orders")
        await logged(Fleet(), group, retrying(0.5), decorator)

        assert ["orders"] == keys


async def test_verdicts_of_outlier_detection_do_not_matter():
    """Elsewhere is where the call has not been."""

    class Blind(CircuitBreakerStrategy):
        def should_report_as_success(self, ctx, cause):
            return None

    group = group_of("ab", outlier_detection=OutlierDetection(strategy=Blind()))
    status, _log, asked = await logged(Fleet(a=refused()), group, retrying(SAFELY))

    assert (200, "ab", {}) == (status, asked, out(group))
    assert "b" == name_of(group.endpoints[1])
