"""Calls that need a token at once share one fetch."""

from __future__ import annotations

import asyncio

import pytest
from chains import SAFELY, after, pass_on, retrying, session
from fetched_tokens import BASE, Tokens, outcomes, refreshing_session, sent

from aioretry_smithy import RefreshingClient
from aioretry_smithy.testing import ScriptedTransport

CHAINS = pytest.mark.parametrize("between", [(), (pass_on,)], ids=["own", "foreign"])


class TestSingleFlight:
    """One fetch for all who need a token at the same time."""

    @CHAINS
    async def test_calls_at_once_fetch_once(self, between):
        """Before the first request, and when the token has expired."""
        tokens = Tokens()
        added = (*between, retrying(SAFELY), *between)
        async with refreshing_session(tokens, *added, inside=between) as opened:
            assert [200] * 10 == await outcomes(opened, 10)
            assert 1 == tokens.asked
            assert [200] == await outcomes(opened, 1)
            tokens.expire()
            assert [200] * 10 == await outcomes(opened, 10)

        assert 3 == tokens.asked

    async def test_late_401_takes_the_newer_token(self):
        """What came meanwhile is good for a request of before, too."""
        tokens = Tokens(takes=0.1)
        quick, slow = tokens.answer, after(5.0, 401)
        answers = [quick, slow, 401, quick, quick]
        async with refreshing_session(tokens, answers=answers) as opened:
            await opened.get("/")
            late = asyncio.create_task(opened.get("/"))
            await asyncio.sleep(1.0)
            await opened.get("/")
            assert 200 == (await late).status

        assert 2 == tokens.asked

    async def test_same_token_again_costs_one_fetch(self):
        """A server that insists on its 401 gets it once for all calls at once."""
        asked = []

        async def fetch():
            asked.append(1)
            await asyncio.sleep(1.0)
            return "stale"

        added = RefreshingClient.new_decorator(fetch)
        async with session([401] * 20, added, base_url=BASE) as opened:
            assert [401] * 10 == await outcomes(opened, 10)

        assert 2 == len(asked)

    async def test_sessions_of_one_decorator_share_the_token(self):
        """Also one that is being fetched."""
        tokens = Tokens()
        added = tokens.decorator()
        async with (
            session([tokens.answer] * 9, added, base_url=BASE) as one,
            session([tokens.answer] * 9, added, base_url=BASE) as other,
        ):
            got = await asyncio.gather(one.get("/"), other.get("/"))

        assert [200, 200] == [each.status for each in got]
        assert 1 == tokens.asked

    async def test_fetch_of_another_class_of_function(self):
        """A partial or a lambda that returns a coroutine will do."""
        tokens = Tokens()
        added = RefreshingClient.new_decorator(lambda: tokens.fetch() or None)
        async with session([tokens.answer], added, base_url=BASE) as opened:
            assert [200] == await outcomes(opened, 1)

    @pytest.mark.skipif(
        not hasattr(asyncio, "eager_task_factory"), reason="new in Python 3.12"
    )
    async def test_fetch_may_end_at_once(self):
        """Where tasks begin as soon as they are made."""
        asked = []

        async def fetch():
            asked.append(1)
            return f"token-{len(asked)}"

        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        added = RefreshingClient.new_decorator(fetch)
        async with session([200, 401, 200, 200], added, base_url=BASE) as opened:
            for _ in range(3):
                assert [200] == await outcomes(opened, 1)

        assert 2 == len(asked)


class TestSameSession:
    """The fetch may use the session that it is for."""

    @CHAINS
    async def test_its_requests_need_no_token(self, between):
        """They go out without one, wait for nothing, and their 401 fetches none."""
        statuses = []

        def answer(ctx, request):
            if request.url.path == "/token":
                assert "Authorization" not in request.headers
                return (200, "t") if len(statuses) else 401
            return 200 if request.headers["Authorization"] == "Bearer t" else 401

        async def fetch():
            async with opened.post("/token") as response:
                statuses.append(response.status)
            async with opened.post("/token") as response:
                return await response.text()

        added = (
            *between,
            RefreshingClient.new_decorator(fetch),
            *between,
            retrying(SAFELY),
        )
        opened = session([answer] * 20, *added, base_url=BASE)
        async with opened, asyncio.timeout(10.0):
            assert [200] * 5 == await outcomes(opened, 5)

        assert [401] == statuses

    async def test_fetch_of_another_that_needs_this_one(self):
        """Two whose fetches use the session of the other do not wait for both."""

        async def fetch_a():
            async with b.get("/"):
                return "a"

        async def fetch_b():
            async with a.get("/"):
                return "b"

        a = session([200] * 9, RefreshingClient.new_decorator(fetch_a), base_url=BASE)
        b = session([200] * 9, RefreshingClient.new_decorator(fetch_b), base_url=BASE)
        async with a, b, asyncio.timeout(10.0):
            assert 200 == (await a.get("/")).status

    async def test_task_that_outlives_the_fetch_gets_tokens(self):
        """It is part of it no longer."""
        tasks = []

        async def later():
            await asyncio.sleep(1.0)
            return await opened.get("/later")

        async def fetch():
            tasks.append(asyncio.create_task(later()))
            return "t"

        transport = ScriptedTransport([200] * 2)
        added = RefreshingClient.new_decorator(fetch)
        opened = session(transport, added, base_url=BASE)
        async with opened:
            await opened.get("/")
            await tasks[0]

        assert ["Bearer t", "Bearer t"] == sent(transport)
