"""Requests that cost more or less than others, and several limits at once."""

import asyncio
import math

import aiohttp
import pytest
from chains import URL, Scripted, after, bad_argument, now, retrying, session
from limiters import end_of, ends_of, level_of, tokens, weight

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    HedgingClient,
    RateLimit,
    RateLimitError,
    RateLimitingClient,
    RequestLog,
    RetryBudget,
    RetryRule,
    RetrySafety,
    RetryStopReason,
    client_decorator,
    is_unprocessed,
    retry_safety,
)

limiting = RateLimitingClient.new_decorator


class TestCost:
    """A request costs what a function says."""

    async def test_requests_wait_until_there_are_tokens_for_them(self):
        """In the order in which they came, light ones behind heavy ones."""
        async with session([200] * 4, limiting(tokens())) as client:
            ends = await ends_of(client, 6, 8, 1, 2)

        assert [(0, 200), (4.0, 200), (5.0, 200), (7.0, 200)] == ends

    async def test_a_request_that_costs_nothing_passes_all(self):
        """It neither stands in line nor takes anything."""
        limit = tokens()
        async with session([200] * 3, limiting(limit)) as client:
            ends = await ends_of(client, 10, 5, 0)

        assert [(0, 200), (5.0, 200), (0, 200)] == ends
        assert 0.0 == level_of(limit)

    async def test_the_function_gets_the_attempt_and_what_is_sent(self):
        """So it may look at the body, and at which attempt it is."""
        seen = []

        def cost(ctx, request):
            seen.append((ctx.attempt, request.options["json"]))
            return 2

        limit = RateLimit(100, cost=cost)
        async with session([503, 200], limiting(limit), retrying(0.5)) as client:
            await client.post(URL, json={"question": 1})

        assert [(1, {"question": 1}), (2, {"question": 1})] == seen
        assert 98.0 == level_of(limit)

    async def test_a_cost_above_the_burst_is_refused_for_good(self):
        """It names both; nothing is sent again, whatever the strategy says."""
        breaker, limit = CircuitBreaker(minimum_request_threshold=1), tokens()
        chain = (
            limiting([RateLimit(5), limit]),
            CircuitBreakerClient.new_decorator(breaker),
            retrying(RetryRule(exceptions=[aiohttp.ClientError])),
        )
        async with Scripted([], *chain) as scripted:
            with pytest.raises(RateLimitError) as caught:
                await scripted.session.get(URL, headers={"weight": "10.5"})

        error = caught.value
        assert (limit, math.inf, 10.5, 10) == (
            error.limit,
            error.retry_in,
            error.cost,
            error.burst,
        )
        text = "a cost of 10.5 is above the burst of 10"
        assert f"{limit!r}: {text}" == str(error)
        assert RetrySafety.NO is retry_safety(error)
        assert is_unprocessed(error)
        log = RequestLog.of(error)
        assert (RetryStopReason.REFUSED, 1, False) == (
            log.stop_reason,
            log.total_attempts,
            log.sent,
        )
        assert 0.0 == now()
        assert 0 == breaker.event_count.failure

    async def test_an_error_of_other_refusals_names_no_cost(self):
        """Any method may be sent again."""
        error = RateLimitError(RateLimit(1), 3.0)

        assert (None, None, None) == (error.cost, error.burst, error.is_retry_safe)
        assert RetrySafety.YES is retry_safety(error)

    @pytest.mark.parametrize(
        "figure", [-1, math.nan, math.inf, "5", None, True], ids=repr
    )
    async def test_a_cost_that_is_none_is_the_callers_mistake(self, figure):
        """One attempt, and nobody counts it."""
        breaker = CircuitBreaker(minimum_request_threshold=1)
        budget = RetryBudget(brake_after=1)
        limit = RateLimit(5, cost=lambda ctx, request: figure)
        chain = (
            limiting(limit),
            CircuitBreakerClient.new_decorator(breaker),
            retrying(0.5, limiter=budget),
        )
        async with session([], *chain) as client:
            with bad_argument("cost", figure, "finite and >= 0") as caught:
                await client.get(URL)

        assert 1 == RequestLog.of(caught.value).total_attempts
        assert (0, 0) == (breaker.event_count.failure, budget.failures_in_a_row)
        assert 5.0 == level_of(limit)

    async def test_every_hedge_pays_for_itself(self):
        """As every attempt does."""
        limit = tokens(rate=0.001)
        chain = limiting(limit), HedgingClient.new_decorator(1.0)
        async with session([after(9.0, 200), 200], *chain) as client:
            assert (1.0, 200) == await end_of(client, 3)

        assert pytest.approx(4.0, abs=0.01) == level_of(limit)

    @pytest.mark.parametrize("name", ["cost", "actual"])
    @pytest.mark.parametrize(
        "function", [5, "5", asyncio.sleep], ids=["number", "text", "async"]
    )
    def test_a_function_has_to_be_a_plain_one(self, name, function):
        """There is no wait between asking and taking."""
        with pytest.raises(ValueError, match=rf"^{name}: .* \(expected: a plain func"):
            RateLimit(5, **{name: function})

    def test_it_shows_its_functions(self):
        """By their names."""
        limit = RateLimit(90_000, per=60.0, cost=weight, actual=weight)

        assert "RateLimit(90000, 60.0, cost=weight, actual=weight)" == repr(limit)


class TestSettle:
    """The caller says what an attempt has cost."""

    async def test_the_last_figure_counts(self):
        """Of the attempt that the response came from."""
        limit = tokens(rate=0.001)
        chain = limiting(limit), retrying(0.5)
        async with session([503, 200], *chain) as client:
            response = await client.get(URL, headers={"weight": "4"})
            levels = [level_of(limit)]
            for figure in (1, 9, 2):
                limit.settle(response, figure)
                levels.append(level_of(limit))

        assert pytest.approx([2, 5, -3, 4], abs=0.01) == levels

    async def test_a_refund_wakes_those_who_wait(self):
        """In all their lines."""
        limit = tokens(rate=0.05)
        async with session([200] * 2, limiting([RateLimit(9), limit])) as client:
            response = await client.get(URL, headers={"weight": "10"})
            waiter = asyncio.create_task(end_of(client, 8))
            await asyncio.sleep(1.0)
            limit.settle(response, 1)

            assert (1.0, 200) == await waiter

    async def test_each_limit_of_several_is_settled_on_its_own(self):
        """Also where two decorators have one each."""
        one, two, plain = tokens(rate=0.001), tokens(rate=0.001), RateLimit(5)
        async with session([200], limiting([one, plain]), limiting(two)) as client:
            response = await client.get(URL, headers={"weight": "10"})
            one.settle(response, 3)
            two.settle(response, 5)

        assert pytest.approx([7, 5], abs=0.01) == [level_of(one), level_of(two)]

        with bad_argument("limit", plain, "a limit with cost or actual"):
            plain.settle(response, 1)

    async def test_a_figure_beyond_belief_is_cut(self, caplog):
        """With a warning: a server that lies must not close the limit."""
        limit = tokens()
        async with session([200], limiting(limit)) as client:
            response = await client.get(URL)
            limit.settle(response, 10**9)

        assert -90.0 == level_of(limit)
        warned = "a request has cost 1000000000, which counts as 100"
        assert [f"{limit!r}: {warned}"] == caplog.messages

    @pytest.mark.parametrize("figure", [-1, math.nan, math.inf, "5", None], ids=repr)
    async def test_a_figure_that_is_none_is_refused(self, figure):
        """The estimate stands."""
        limit = tokens()
        async with session([200], limiting(limit)) as client:
            response = await client.get(URL)
            with bad_argument("actual", figure, "finite and >= 0"):
                limit.settle(response, figure)

        assert 9.0 == level_of(limit)

    async def test_a_response_of_another_limit_is_unknown(self):
        """So is what is no response, and one that a decorator has made."""
        limit = tokens()
        async with session([200], limiting(tokens())) as client:
            response = await client.get(URL)
        for each in (response, None, object()):
            with pytest.raises(
                ValueError, match=r"^response: .* \(expected: a response that"
            ):
                limit.settle(each, 1)

    async def test_a_response_that_is_returned_again_is_of_the_last_request(self):
        """As a cache does."""
        limit, kept = tokens(rate=0.001), []

        @client_decorator
        async def caching(delegate, ctx, request):
            if not kept:
                kept.append(await delegate.execute(ctx, request))
            return kept[0]

        async with session([200], caching, limiting(limit)) as client:
            await client.get(URL, headers={"weight": "3"})
            response = await client.get(URL, headers={"weight": "4"})
            limit.settle(response, 0)

        assert pytest.approx(7, abs=0.01) == level_of(limit)

    async def test_a_request_of_no_cost_may_turn_out_to_have_one(self):
        """What it was is a debt."""
        limit = tokens(rate=0.001)
        async with session([200], limiting(limit)) as client:
            response = await client.get(URL, headers={"weight": "0"})
            limit.settle(response, 12)

        assert -2.0 == level_of(limit)

    async def test_a_limit_without_an_estimate_counts_requests_at_first(self):
        """Where there is only what they have cost in the end."""
        limit = RateLimit(0.001, burst=10, actual=lambda log, content: None)
        async with session([200], limiting(limit)) as client:
            response = await client.get(URL)

            assert 9.0 == level_of(limit)

            limit.settle(response, 5)

        assert 5.0 == level_of(limit)
