"""Requests that cost more or less than others, and several limits at once."""

from __future__ import annotations

import asyncio
import math

import aiohttp
import pytest
from chains import (
    URL,
    Scripted,
    after,
    bad_argument,
    now,
    pass_on,
    raises_exactly,
    retrying,
    session,
)

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
    SessionBuilder,
    client_decorator,
    is_unprocessed,
    retry_safety,
    rpc,
    unwrap,
)

limiting = RateLimitingClient.new_decorator


def weight(ctx, request):
    """Return the weight that a request says it has."""
    return float(request.headers.get("weight", 1))


def tokens(rate=1.0, burst=10, **settings):
    return RateLimit(rate, burst=burst, cost=weight, **settings)


@pytest.fixture(params=[(), (pass_on,)], ids=["alone", "beside a decorator"])
def beside(request):
    return request.param


async def end_of(client, weight=1, url=URL):
    """Make a call; return its end and what it brought."""
    try:
        async with client.get(url, headers={"weight": f"{weight}"}) as response:
            return now(), response.status
    except (aiohttp.ClientError, TimeoutError) as error:
        return now(), type(error)


async def ends_of(client, *weights):
    return await asyncio.gather(*(end_of(client, each) for each in weights))


def level_of(limit):
    """Return the tokens of a limit; less than 0 is a debt."""
    bucket = limit._line.rule
    return bucket.burst - max(0.0, bucket._full_at - now()) / bucket._interval


class TestCost:
    """A request costs what a function says."""

    async def test_requests_wait_until_there_are_tokens_for_them(self, beside):
        """In the order in which they came, light ones behind heavy ones."""
        async with session([200] * 4, limiting(tokens()), *beside) as client:
            ends = await ends_of(client, 6, 8, 1, 2)

        assert [(0, 200), (4.0, 200), (5.0, 200), (7.0, 200)] == ends

    async def test_a_request_that_costs_nothing_passes_all(self, beside):
        """It neither stands in line nor takes anything."""
        limit = tokens()
        async with session([200] * 3, limiting(limit), *beside) as client:
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

    async def test_a_cost_above_the_burst_is_refused_for_good(self, beside):
        """It names both; nothing is sent again, whatever the strategy says."""
        breaker, limit = CircuitBreaker(minimum_request_threshold=1), tokens()
        chain = (
            limiting([RateLimit(5), limit]),
            *beside,
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
    async def test_a_cost_that_is_none_is_the_callers_mistake(self, beside, figure):
        """One attempt, and nobody counts it."""
        breaker = CircuitBreaker(minimum_request_threshold=1)
        budget = RetryBudget(brake_after=1)
        limit = RateLimit(5, cost=lambda ctx, request: figure)
        chain = (
            limiting(limit),
            *beside,
            CircuitBreakerClient.new_decorator(breaker),
            retrying(0.5, limiter=budget),
        )
        async with session([], *chain) as client:
            with bad_argument("cost", figure, "finite and >= 0") as caught:
                await client.get(URL)

        assert 1 == RequestLog.of(caught.value).total_attempts
        assert (0, 0) == (breaker.event_count.failure, budget.failures_in_a_row)
        assert 5.0 == level_of(limit)

    async def test_what_the_function_raises_is_the_callers_mistake(self, beside):
        """A usual strategy makes one attempt."""

        def cost(ctx, request):
            raise ConnectionError("no tokenizer")

        chain = limiting(RateLimit(5, cost=cost)), *beside, retrying(0.5)
        async with session([], *chain) as client:
            with raises_exactly("no tokenizer", ConnectionError) as caught:
                await client.get(URL)

        assert 1 == RequestLog.of(caught.value).total_attempts

    async def test_every_hedge_pays_for_itself(self, beside):
        """As every attempt does."""
        limit = tokens(rate=0.001)
        chain = limiting(limit), *beside, HedgingClient.new_decorator(1.0)
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


class TestSeveral:
    """A request takes a turn at each of its limits, or at none."""

    async def test_each_limit_holds(self, beside):
        """Here the requests count first, and then the tokens."""
        both = [RateLimit(1, burst=2), tokens(rate=1.0, burst=10)]
        async with session([200] * 5, limiting(both), *beside) as client:
            ends = await ends_of(client, 1, 1, 1, 10, 1)

        assert [0.0, 0.0, 1.0, 3.0, 4.0] == [at for at, _ in ends]

    async def test_nothing_is_taken_while_a_request_waits(self):
        """Of no limit; whoever has but the other one is not held up."""
        requests, many = RateLimit(1, burst=1), tokens(rate=1.0)
        async with session([200] * 3, limiting([requests, many])) as client:
            await end_of(client, 10)
            waiter = asyncio.create_task(end_of(client, 5))
            await asyncio.sleep(2.0)

            assert (1, 1) == (requests.pending, many.pending)
            assert (1.0, 2.0) == (level_of(requests), level_of(many))
            assert (5.0, 200) == await waiter
            assert (0.0, 0.0) == (level_of(requests), level_of(many))

    async def test_a_request_holds_up_those_behind_it_in_each_line(self):
        """First come, first served: also one that needs only one of the limits."""
        requests, many = RateLimit(1, burst=1), tokens(rate=1.0)
        async with (
            session([200] * 2, limiting([requests, many])) as both,
            session([200], limiting(requests)) as alone,
        ):
            await end_of(both, 10)
            heavy = asyncio.create_task(end_of(both, 5))
            await asyncio.sleep(1.0)

            assert (6.0, 200) == await end_of(alone)
            assert (5.0, 200) == await heavy

    async def test_opposite_orders_wait_for_no_one(self):
        """A request is in all of its lines from one moment on."""
        one, two = RateLimit(1, burst=1), RateLimit(1, burst=1)
        async with (
            session([200] * 4, limiting([one, two])) as there,
            session([200] * 4, limiting([two, one])) as back,
        ):
            clients = [there, back] * 4
            ends = await asyncio.gather(*map(end_of, clients))

        assert [(at, 200) for at in range(8)] == ends

    async def test_the_error_names_the_limit_whose_turn_is_latest(self):
        """It says when that is."""
        requests, many = RateLimit(1, burst=1), tokens(rate=1.0)
        chain = limiting([requests, many], timeout=0.5)
        async with session([200], chain) as client:
            await end_of(client, 4)
            errors = []
            for cost in ("1", "10"):
                with pytest.raises(RateLimitError) as caught:
                    await client.get(URL, headers={"weight": cost})
                errors.append((caught.value.limit, caught.value.retry_in))

        assert [(requests, 1.0), (many, 4.0)] == errors

    async def test_a_forecast_knows_what_holds_up_the_line(self):
        """A request behind a heavy one is refused at once, and takes no tokens."""
        requests, many = RateLimit(1, burst=5), tokens(rate=1.0)
        chain = limiting([requests, many], timeout=8.0)
        async with (
            session([200] * 2, chain) as client,
            session([], limiting(requests, timeout=7.0)) as other,
        ):
            await end_of(client, 10)
            heavy = asyncio.create_task(end_of(client, 8))
            await asyncio.sleep(0)

            assert (0.0, RateLimitError) == await end_of(other)
            assert (8.0, 200) == await heavy

    async def test_a_forecast_forgets_who_has_left(self):
        """Who comes next waits as long as it may, and is served in time."""
        requests, many = RateLimit(1, burst=5), tokens(rate=1.0)
        async with (
            session([200] * 3, limiting([requests, many])) as client,
            session([200], limiting(requests, timeout=7.0)) as other,
        ):
            await end_of(client, 10)
            first, second = (
                asyncio.create_task(end_of(client, each)) for each in (8, 2)
            )
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.sleep(0)

            assert (2.0, 200) == await end_of(other)
            assert (2.0, 200) == await second

    async def test_a_cancelled_request_lets_all_others_go(self):
        """In each of its lines."""
        one, two = RateLimit(1, burst=1), tokens(rate=1.0)
        async with (
            session([200] * 2, limiting([one, two])) as both,
            session([200], limiting(one)) as first,
            session([200], limiting(two)) as second,
        ):
            await end_of(both, 10)
            heavy = asyncio.create_task(end_of(both, 9))
            await asyncio.sleep(0)
            light = [asyncio.create_task(end_of(each, 1)) for each in (first, second)]
            await asyncio.sleep(3.0)

            assert not any(each.done() for each in light)

            heavy.cancel()

            assert [(3.0, 200)] * 2 == await asyncio.gather(*light)

    async def test_a_turn_that_comes_with_a_cancellation_is_given_back(self):
        """At all limits; those behind have it."""
        one, two = RateLimit(1, burst=1), tokens(rate=1.0)
        async with session([200] * 3, limiting([one, two])) as client:
            await end_of(client, 10)
            heavy = asyncio.create_task(end_of(client, 9))
            await asyncio.sleep(0)
            light = asyncio.create_task(end_of(client, 1))
            asyncio.get_running_loop().call_at(9.0, heavy.cancel)

            assert (9.0, 200) == await light

        assert heavy.cancelled()
        assert (0.0, 8.0) == (level_of(one), level_of(two))

    async def test_who_gives_up_lets_all_others_go(self):
        """A debt has moved its turn away; it is refused in the end, not before."""
        both = [RateLimit(100), tokens(rate=1.0)]
        async with (
            session([200] * 2, limiting(both, timeout=5.0)) as client,
            session([200], limiting(both)) as patient,
        ):
            response = await client.get(URL, headers={"weight": "10"})
            heavy = asyncio.create_task(end_of(client, 5))
            await asyncio.sleep(0)
            both[1].settle(response, 12)
            await asyncio.sleep(1.0)
            light = asyncio.create_task(end_of(patient, 1))

            assert (5.0, RateLimitError) == await heavy
            assert (5.0, 200) == await light

    async def test_a_limit_that_learns_may_be_one_of_them(self, beside):
        """All wait for the reset that its answers name."""
        learning = RateLimit.from_headers()
        answers = [(200, {"x-ratelimit-remaining-tokens": "0"}, b""), 200, 200]
        answers[0][1]["x-ratelimit-reset-tokens"] = "6s"
        both = [tokens(rate=1.0), learning]
        async with session(answers, limiting(both), *beside) as client:
            await end_of(client, 1)
            ends = await ends_of(client, 1, 2)

        assert [(6.0, 200)] * 2 == ends

    async def test_the_log_shows_the_wait_for_all(self):
        """As for one limit."""
        both = [RateLimit(1, burst=1), tokens(rate=1.0)]
        async with session([200, 200], limiting(both)) as client:
            await end_of(client, 10)
            async with client.get(URL, headers={"weight": "4"}) as response:
                log = RequestLog.of(response)

        assert (4.0, "rate_limit") == (log.delay, log.delay_source)

    async def test_each_host_may_have_several(self):
        """The view of limits names them all."""
        decorator = RateLimitingClient.new_per_host_decorator(
            lambda key: [RateLimit(1), tokens()]
        )
        async with session([200] * 2, decorator) as client:
            await end_of(client, 10, "http://a/x")
            await end_of(client, 10, "http://b/x")
            limits = unwrap(client, RateLimitingClient).limits

        assert 0.0 == now()
        assert ["a:80", "a:80#2", "b:80", "b:80#2"] == [*limits]

    async def test_the_standard_chain_takes_them(self):
        """As ``rate``, or made for each host."""
        for rate in (
            [RateLimit(5), tokens()],
            lambda host: (RateLimit(5), tokens()),
        ):
            builder = SessionBuilder.standard(rate=rate)
            async with builder.build() as client:
                assert unwrap(client, RateLimitingClient) is not None

    def test_it_describes_them(self):
        """In the order in which they were given."""
        chain = limiting([RateLimit(5), RateLimit(9, per=60.0)], timeout=2.0)
        builder = SessionBuilder().decorator(chain)

        both = "[RateLimit(5, 1.0), RateLimit(9, 60.0)]"
        assert f"RateLimitingClient({both}, timeout=2.0)" in builder.describe()

    @pytest.mark.parametrize("limits", [[], [RateLimit(1), 5], "ab", {}, None])
    def test_other_things_are_refused(self, limits):
        """Where the decorator is made."""
        expected = "a RateLimit, or a list of them"
        with pytest.raises(ValueError, match=rf"^limit: .* \(expected: {expected}\)$"):
            limiting(limits)

    def test_the_same_limit_twice_is_refused(self):
        """A request would pay it twice."""
        limit = RateLimit(5)
        with raises_exactly("limit: <list object> (expected: each limit once)"):
            limiting([limit, RateLimit(5), limit])

    def test_functions_take_no_rates(self):
        """As before: there is nothing to send."""
        with pytest.raises(ValueError, match="RateLimitingClient"):
            rpc(limiting([RateLimit(5), tokens()]))(asyncio.sleep)


class TestSettle:
    """The caller says what an attempt has cost."""

    async def test_the_last_figure_counts(self, beside):
        """Of the attempt that the response came from."""
        limit = tokens(rate=0.001)
        chain = limiting(limit), *beside, retrying(0.5)
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

        with bad_argument("limit", plain, "one with cost or actual"):
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
            with pytest.raises(ValueError, match=r"^response: .* \(expected: one that"):
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
