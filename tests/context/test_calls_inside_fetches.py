"""The fetch of a token: it may use what any of those has who wait for it."""

import asyncio

import pytest
from chains import after, now, session
from nested_calls import BASE, place, rate

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitError,
    RateLimit,
    RefreshingClient,
    ResponseTimeoutError,
    capture_logs,
    client_decorator,
)


class TestFetches:
    """A fetch that several wait for rides on what any of them holds."""

    async def test_one_who_comes_later_lends_its_place(self):
        """To a fetch that waits for one already."""
        limit = ConcurrencyLimit.fixed(1)

        async def fetch():
            async with second.get("/token") as response:
                return str(response.status)

        @client_decorator
        async def slow(delegate, ctx, request):
            if request.url.path != "/token":
                await asyncio.sleep(1.0)
            return await delegate.execute(ctx, request)

        refreshing = RefreshingClient.new_decorator(fetch)
        first = session([200] * 9, refreshing, base_url=BASE)
        chain = refreshing, slow, place(limit, timeout=30.0)
        second = session([200] * 9, *chain, base_url=BASE)
        async with first, second:
            holder = asyncio.create_task(second._request("GET", "/"))
            await asyncio.sleep(0.5)
            waiting = asyncio.create_task(first._request("GET", "/"))
            responses = await asyncio.gather(holder, waiting)

        assert [200, 200] == [each.status for each in responses]
        assert 1.0 == now()
        assert (0, 0) == (limit.in_flight, limit.pending)

    async def test_one_who_comes_later_lends_its_turn(self):
        """The turn of the fetch is on credit then, and its log says what it waited."""
        limit = RateLimit(1, per=30.0)

        async def fetch():
            async with second.get("/token") as response:
                return str(response.status)

        @client_decorator
        async def slow(delegate, ctx, request):
            if request.url.path != "/token":
                await asyncio.sleep(1.0)
            return await delegate.execute(ctx, request)

        refreshing = RefreshingClient.new_decorator(fetch)
        first = session([200] * 9, refreshing, base_url=BASE)
        second = session([200] * 9, refreshing, slow, rate(limit), base_url=BASE)
        async with first, second:
            holder = asyncio.create_task(second._request("GET", "/"))
            await asyncio.sleep(0.5)
            with capture_logs() as logs:
                waiting = asyncio.create_task(first._request("GET", "/"))
                responses = await asyncio.gather(holder, waiting)
            assert 1.0 == now()
            await second.get("/plain")

        assert [200, 200] == [each.status for each in responses]
        assert {(200, None)} == {(each.response_status, each.delay) for each in logs}
        assert (61.0, 0) == (now(), limit.pending)

    async def test_wait_in_a_fetch_that_ends_by_itself(self):
        """Its time is up, or its place is free, before anyone lends one."""
        limit = ConcurrencyLimit.fixed(1)
        got = []

        async def fetch():
            for path in "/one", "/two":
                try:
                    async with client.get(path) as response:
                        got.append((response.status, now()))
                except ConcurrencyLimitError as error:
                    got.append((type(error), now()))
            return "token"

        chain = place(limit, timeout=1.0), RefreshingClient.new_decorator(fetch)
        client = session([after(1.5, 200)] * 9, *chain, base_url=BASE)
        async with client:
            headers = {"Authorization": "mine"}
            busy = asyncio.create_task(client._request("GET", "/", headers=headers))
            await asyncio.sleep(0)
            await client.get("/orders")
            await busy

        assert [(ConcurrencyLimitError, 1.0), (200, 3.0)] == got
        assert 0 == limit.in_flight

    async def test_wait_in_a_fetch_that_is_given_up(self):
        """It leaves its line with the last one who wants the token."""
        limit = ConcurrencyLimit.fixed(1)

        async def fetch():
            return str((await client.get("/token")).status)

        chain = place(limit), RefreshingClient.new_decorator(fetch)
        client = session([after(3.0, 200)] * 9, *chain, base_url=BASE)
        async with client:
            headers = {"Authorization": "mine"}
            busy = asyncio.create_task(client._request("GET", "/", headers=headers))
            await asyncio.sleep(0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await client.get("/orders")
            await asyncio.sleep(0.1)
            assert (1, 0) == (limit.in_flight, limit.pending)
            await busy

    async def test_fetches_that_wait_for_each_other(self):
        """They lend what is not there: neither goes on for ever."""
        limit = ConcurrencyLimit.fixed(1)
        got = []

        async def fetch_one():
            await asyncio.sleep(0.1)
            got.append(asyncio.create_task(plain._request("GET", "/")))
            return str((await two.get("/")).status)

        async def fetch_two():
            await asyncio.sleep(0.1)
            return str((await one.get("/")).status)

        def opened(fetch):
            decorator = RefreshingClient.new_decorator(fetch)
            return session([200], decorator, base_url=BASE, timeout=1.0)

        one, two = opened(fetch_one), opened(fetch_two)
        plain = session([after(2.0, 200)] * 9, place(limit), base_url=BASE)
        async with one, two, plain:
            busy = asyncio.create_task(plain._request("GET", "/"))
            calls = [
                asyncio.create_task(each._request("GET", "/")) for each in (one, two)
            ]
            failures = await asyncio.gather(*calls, return_exceptions=True)
            assert {ResponseTimeoutError} == {*map(type, failures)}
            await busy
            assert 200 == (await got[0]).status

        assert 4.0 == now()

    async def test_task_that_outlives_the_fetch_is_free(self):
        """It began in the fetch."""
        tasks = []

        async def later():
            await asyncio.sleep(5.0)
            try:
                return (await client.get("/late")).status
            except ConcurrencyLimitError:
                return ConcurrencyLimitError

        async def fetch():
            tasks.append(asyncio.create_task(later()))
            return "token"

        refreshing = RefreshingClient.new_decorator(fetch)
        limiting = place(max_pending=0)
        client = session([after(2.0, 200)] * 9, refreshing, limiting, base_url=BASE)
        async with client:
            await client.get("/orders")
            await asyncio.sleep(2.0)
            await asyncio.gather(client._request("GET", "/orders"), *tasks)

        assert ConcurrencyLimitError is tasks[0].result()
