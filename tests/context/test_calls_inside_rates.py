"""A call inside an attempt that has its turn at a rate: its own is on credit."""

from __future__ import annotations

import asyncio

import pytest
from chains import now, session
from nested_calls import BASE, OTHER, Shop, rate

from aioretry_smithy import (
    RateLimit,
    RateLimitingClient,
    client_decorator,
    new_response,
)

pytestmark = pytest.mark.virtual_time


class TestRates:
    """A turn inside is on credit: at once, and owed by those that come later."""

    async def test_turn_is_owed_by_those_that_come_later(self):
        """One call in 40 s, of which one inside is a whole one."""
        async with Shop(rate(RateLimit(1, per=40.0))) as shop:
            assert (200, 2.0) == await shop.get()
            assert (200, 81.0) == await shop.get("/plain")

    async def test_those_in_line_wait_longer(self):
        """They had come before the call inside."""
        async with Shop(rate(RateLimit(1, per=40.0))) as shop:
            ends = await asyncio.gather(shop.get(), shop.get("/plain"))

            assert [(200, 2.0), (200, 81.0)] == ends

    async def test_cost_is_charged_whole(self):
        """What it is, by the function of the user's."""
        costs = {"/orders": 10, "/inner": 4, "/plain": 1}
        limit = RateLimit(
            10, per=10.0, cost=lambda ctx, request: costs[request.url.path]
        )
        async with Shop(rate(limit)) as shop:
            assert (200, 2.0) == await shop.get()
            assert (200, 6.0) == await shop.get("/plain")

    async def test_other_limits_of_a_list_are_waited_for(self):
        """Only one of them is held by the attempt around."""
        held, other = RateLimit(1, per=40.0), RateLimit(1, per=10.0)
        async with (
            Shop(rate(held)) as shop,
            Shop(rate(other)) as busy,
            Shop(rate([held, other])) as both,
        ):
            shop.ask = lambda: both.get("/plain")
            await busy.get("/plain")

            assert (200, 12.0) == await shop.get()
            assert [("/plain", 10.0)] == both.sent
            assert (200, 82.0) == await shop.get("/plain")

    async def test_rate_that_processes_share(self):
        """A storage lends nothing: where it has no turn left, none is counted."""
        limits = pytest.importorskip("aioretry_smithy.limits")
        shared = limits.SharedRateLimit(
            "async+memory://", "1 per 40 second", key="orders"
        )
        async with Shop(rate(shared)) as shop:
            assert (200, 2.0) == await shop.get()

    async def test_rate_of_another_host_is_waited_for(self):
        """It is an object of its own."""
        per_host = RateLimitingClient.new_per_host_decorator(
            lambda key: RateLimit(1, per=40.0)
        )
        async with Shop(per_host) as shop:
            await shop.get(OTHER)
            shop.ask = lambda: shop.get(OTHER)

            assert (200, 42.0) == await shop.get()

    async def test_one_that_is_only_watched_says_nothing(self, caplog):
        """It would not have waited."""
        async with Shop(rate(RateLimit(1, per=40.0), enforce=False)) as shop:
            await shop.get()

        assert [] == caplog.messages


class TestLearntRates:
    """A call inside is no probe, and does not wait for one."""

    @staticmethod
    async def closed(answers, ask):
        """Build a session on a server that has nothing left, for 10 s at most."""
        limit = RateLimit.from_headers(max_wait=10.0)
        full = new_response_of(429, {"Retry-After": "99"})
        sent = []

        async def answer(ctx, request):
            sent.append((request.url.path, now()))
            return await answers(ctx, request)

        @client_decorator
        async def asking(delegate, ctx, request):
            if request.url.path == "/orders":
                await ask(client)
            return await delegate.execute(ctx, request)

        client = session([full, *[answer] * 20], asking, rate(limit), base_url=BASE)
        await client.get("/plain")
        return client, sent

    async def test_call_inside_the_probe_goes_out_at_once(self, draw):
        """Others wait for the answer to the probe itself."""

        async def ask(client):
            assert 200 == (await client.get("/inner")).status

        async def answers(ctx, request):
            await asyncio.sleep(1.0)
            return 200

        client, sent = await self.closed(answers, ask)
        async with client:
            order = asyncio.create_task(client._request("GET", "/orders"))
            await asyncio.sleep(0)
            plain = asyncio.create_task(client._request("GET", "/plain"))
            await asyncio.gather(order, plain)

        assert [("/inner", 10.0), ("/orders", 11.0), ("/plain", 12.0)] == sent

    async def test_what_it_is_told_is_learnt(self):
        """Others wait for the time that the server has named to it."""

        async def ask(client):
            assert 429 == (await client.get("/inner")).status

        async def answers(ctx, request):
            if request.url.path == "/inner":
                return new_response(request, 429, headers={"Retry-After": "5"})
            return 200

        client, sent = await self.closed(answers, ask)
        async with client:
            await client.get("/orders")
            await client.get("/plain")

        assert ["/inner", "/orders", "/plain"] == [path for path, _ in sent]
        assert sent[1][1] + 5.0 <= sent[2][1]


def new_response_of(status, headers):
    return lambda ctx, request: new_response(request, status, headers=headers)
