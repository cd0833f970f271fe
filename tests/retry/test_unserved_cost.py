"""Retries after failures that cost the server nothing are cheap, and weigh little."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from calls import ended
from chains import SAFELY, URL, after, refused, retrying, session

from aioretry_smithy import (
    Backoff,
    HedgingClient,
    RetryBudget,
    RetryingRpcClient,
    RetryStrategy,
    rpc,
)

RESET = aiohttp.ClientOSError(104, "reset")
REFUSED = ConnectionRefusedError(111, "refused")


async def tokens_after(failure, **settings):
    """Return what is left when a failure was retried, with success."""
    budget = RetryBudget(deposit=0.0, **settings)
    async with session([failure, 200], retrying(SAFELY, limiter=budget)) as client:
        await client.get(URL)
    return budget.tokens


class TestPrice:
    """A retry costs what the failure before it has cost the server."""

    @pytest.mark.parametrize("failure", [502, 503, refused(), RESET], ids=repr)
    async def test_after_an_unserved_failure(self, failure):
        """It did not reach the server, or was turned away at once."""
        assert 9.9 == await tokens_after(failure, unserved_cost=0.1)

    @pytest.mark.parametrize(
        "failure",
        [
            500,
            504,
            429,
            (503, {"Retry-After": "0"}, b""),
            TimeoutError(),
            aiohttp.ClientPayloadError("cut"),
        ],
        ids=repr,
    )
    async def test_after_any_other(self, failure):
        """The server was at work, or says when to come back."""
        assert 9.0 == await tokens_after(failure, unserved_cost=0.1)

    @pytest.mark.parametrize("failure", [503, RESET], ids=repr)
    async def test_after_a_late_one(self, failure):
        """A server that takes a second has worked."""
        late = after(1.0, failure)

        assert 9.0 == await tokens_after(late, unserved_cost=0.1)

    @pytest.mark.parametrize("failure", [503, 500], ids=repr)
    async def test_by_default_all_cost_the_same(self, failure):
        """A whole token."""
        assert 9.0 == await tokens_after(failure)

    async def test_a_part_of_a_token_pays_for_it(self):
        """But for no other."""
        budget = RetryBudget(deposit=0.0, capacity=1, unserved_cost=0.3)
        cheap, dear = ended(503), ended(500)
        paid = [budget.acquire(each, None) for each in (cheap, dear, cheap, cheap)]

        assert [True, False, True, True] == paid
        assert 0.1 == budget.tokens
        assert not budget.acquire(cheap, None)

    async def test_it_may_be_free(self):
        """Also where no token is left."""
        budget = RetryBudget(capacity=1, unserved_cost=0)
        budget.acquire(ended(500), None)

        assert all(budget.acquire(ended(503), None) for _ in range(100))
        assert 0.0 == budget.tokens

    async def test_one_that_is_not_made_gets_back_what_it_cost(self):
        """Whatever was paid for others meanwhile, in this budget or another one."""
        budget, other = RetryBudget(unserved_cost=0.1), RetryBudget(unserved_cost=0.5)
        cheap, dear = ended(503), ended(500)
        for each in (cheap, dear):
            assert budget.acquire(each, None)
            assert other.acquire(each, None)

        assert (8.9, 8.5) == (budget.tokens, other.tokens)
        budget.release(cheap)
        other.release(cheap)
        assert (9.0, 9.0) == (budget.tokens, other.tokens)
        budget.release(dear)
        assert 10.0 == budget.tokens

    async def test_a_cancelled_wait_gives_it_back(self):
        """In the middle of the delay."""
        budget = RetryBudget(unserved_cost=0.1)
        retry = retrying(10.0, limiter=budget)
        async with session([503], retry) as client:
            task = asyncio.create_task(client.get(URL))
            await asyncio.sleep(1.0)
            assert 9.9 == budget.tokens
            task.cancel()
            await asyncio.wait([task])

        assert 10.0 == budget.tokens

    async def test_a_hedge_of_what_is_under_way_costs_a_token(self):
        """The server may be at work; one that follows a failure at once does not."""
        budget = RetryBudget(unserved_cost=0.1)
        hedging = HedgingClient.new_decorator(0.5, limiter=budget)
        async with session([after(0.7, 200), 200], hedging) as client:
            await client.get(URL)
        assert 9.0 == budget.tokens

        async with session([503, 200], hedging) as client:
            await client.get(URL)
        assert 8.9 == budget.tokens

    @pytest.mark.parametrize("unserved", [RESET, REFUSED], ids=repr)
    async def test_functions_pay_by_what_they_raise(self, unserved):
        """A broken or a refused connection, then a mistake of the server's own."""
        budget = RetryBudget(unserved_cost=0.1, deposit=0.0)
        raised = [unserved, TimeoutError()]

        @rpc(RetryingRpcClient.new_decorator(SAFELY, limiter=budget), idempotent=True)
        async def load():
            if raised:
                raise raised.pop(0)

        await load()

        assert 8.9 == budget.tokens


class TestBrake:
    """An unserved failure presses the brake by a part."""

    async def test_ten_press_it_as_one(self):
        """After thirty there is no retry."""
        budget = RetryBudget(brake_after=3, unserved_cost=0.1)
        seen = []
        for _ in range(30):
            budget.on_failure(ended(503), None)
            seen.append(budget.failures_in_a_row)
            is_permitted = budget.acquire(ended(503), None)
            assert is_permitted == (len(seen) < 30)

        assert [0.1, 0.2, 0.3, 1, 2.9, 3] == [*seen[:3], seen[9], *seen[-2:]]
        assert [int, int] == [type(seen[9]), type(seen[-1])]

    async def test_it_is_of_both_kinds_together(self):
        """Two of one and ten of the other."""
        budget = RetryBudget(brake_after=3, unserved_cost=0.1)
        for status in [500, *[503] * 9, 500]:
            budget.on_failure(ended(status), None)
        assert budget.acquire(ended(503), None)

        budget.on_failure(ended(502), None)

        assert 3 == budget.failures_in_a_row
        assert not budget.acquire(ended(503), None)
        budget.on_success(ended(200))
        assert 0 == budget.failures_in_a_row
        assert budget.acquire(ended(503), None)

    async def test_connections_that_break_together_are_one_failure(self):
        """Of the same weight."""
        budget = RetryBudget(unserved_cost=0.1, brake_after=None)
        retry = retrying(SAFELY, max_total_attempts=1, limiter=budget)
        async with session([after(0.5, RESET)] * 9, retry) as client:
            calls = [client.get(URL) for _ in range(9)]
            await asyncio.gather(*calls, return_exceptions=True)

        assert 0.1 == budget.failures_in_a_row

    async def test_by_default_they_are_counted(self):
        """In whole numbers."""
        budget = RetryBudget()
        budget.on_failure(ended(503), None)

        assert (1, int) == (budget.failures_in_a_row, type(budget.failures_in_a_row))


class TestPerHost:
    """Each host has such a budget."""

    async def test_each_has_the_price(self):
        """And shows it."""
        limiter = RetryBudget.per_host(unserved_cost=0.25)
        ctx = ended(503, url="http://orders/")
        limiter.on_failure(ctx, None)
        assert limiter.acquire(ctx, None)
        budget = limiter.budget_for("orders:80")

        assert (9.75, 0.25) == (budget.tokens, budget.failures_in_a_row)
        settings = "deposit=0.1, capacity=10.0, brake_after=3, unserved_cost=0.25"
        assert f"RetryBudget.per_host({settings})" == repr(limiter)
        assert f"RetryBudget('orders:80', {settings})" == repr(budget)
        limiter.release(ctx)
        assert 10.0 == budget.tokens


class TestRestart:
    """A server is away for three seconds, and one call begins each fiftieth of one."""

    @pytest.mark.parametrize(
        ("unserved_cost", "saved"), [(0.1, range(140, 151)), (1.0, range(30))]
    )
    async def test_calls_are_carried(self, unserved_cost, saved):
        """Where retries are cheap; by whole tokens the budget is spent at once."""
        budget = RetryBudget(brake_after=None, capacity=90, unserved_cost=unserved_cost)
        strategy = RetryStrategy.failsafe(Backoff.exponential(0.2, 10.0))
        retry = retrying(strategy, max_total_attempts=6, limiter=budget)
        loop = asyncio.get_running_loop()
        begun = loop.time()

        async def serve(ctx, request):
            if loop.time() < begun + 3.0:
                raise refused()
            return 200

        async def call(client, begins):
            await asyncio.sleep(begins)
            return (await client.get(URL)).status

        async with session([serve] * 2000, retry) as client:
            calls = [call(client, number / 50) for number in range(150)]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)

        assert outcomes.count(200) in saved
