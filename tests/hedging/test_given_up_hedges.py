"""Hedges that are given up or cancelled."""

import asyncio
import gc
import weakref

import pytest
from calls import raising
from chains import URL, after, retrying, session, twice
from limiters import Recording, Unhurried
from races import hedging, race, sent, stubborn, watched
from until import nothing_to_collect

from aioretry_smithy import client_decorator


class TestGivenUp:
    """Requests that lost are given up."""

    async def test_a_loser_that_ignores_it_holds_nobody_up(self):
        """The caller has the answer in the moment that it comes; the rest is closed."""
        closed = []
        loser = stubborn(9.0, watched(202, closed))
        status, moment, log = await race([loser, 201], hedging(0.5))
        shown = log.render()
        await asyncio.sleep(8.9)
        before = [*closed]
        await asyncio.sleep(0.2)

        assert (201, 0.5) == (status, moment)
        assert [(0, None, 0.5), (0.5, 201, 0)] == sent(log)
        assert ([], [202]) == (before, closed)
        assert shown == log.render()
        assert log.children[0].sent

    async def test_a_loser_changes_its_log_no_more(self):
        """Not even while the call goes on, as here with a second round."""
        answers = [stubborn(0.2), 201, after(0.4, 200)]
        status, ended, log = await race(answers, hedging(0.5), twice)

        assert (200, 0.9) == (status, ended)
        assert [(0, None, 0.5), (0.5, 201, 0), (0.5, 200, 0.4)] == sent(log)
        assert log.children[0].response_status is None

    async def test_a_loser_does_not_write_into_the_winner_s_log(self):
        """Not while a decorator outside has not handed the answer on yet."""
        seen = []

        @client_decorator
        async def failing(delegate, ctx, request):
            try:
                return await delegate.execute(ctx, request)
            except asyncio.CancelledError:
                await asyncio.sleep(1.0)
                raise ValueError from None

        @client_decorator
        async def slow(delegate, ctx, request):
            response = await delegate.execute(ctx, request)
            await asyncio.sleep(5.0)
            seen.append(ctx.log.response_status)
            return response

        answers = [after(9.0, 200), 201]
        _, _, log = await race(answers, failing, hedging(0.5), slow, retrying())

        assert [201] == seen
        assert [(0, None, 0.5), (0.5, 201, 0)] == sent(log)

    async def test_a_loser_that_nobody_else_keeps_goes_on(self):
        """The event loop alone would let it be collected while it waits."""
        waited_for = []

        async def waiting(ctx, request):
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(9.0)
            future = asyncio.get_running_loop().create_future()
            waited_for.append(weakref.ref(future))
            await future
            waited_for.append("its end")
            return 202

        await race([waiting, 201], hedging(0.5), timeout=None)
        gc.collect()
        waited_for.pop()().set_result(None)
        await asyncio.sleep(0)

        assert ["its end"] == waited_for

    async def test_a_loser_that_fails_is_not_heard_of(self, caplog):
        """The race is over by then."""
        await race([stubborn(1.0, OSError("too late")), 201], hedging(0.5))
        await asyncio.sleep(1.0)
        await asyncio.sleep(0)
        gc.collect()

        assert [] == caplog.records

    async def test_bad_answers_are_closed_when_another_one_counts(self):
        """Good or bad."""
        closed = []
        made = [watched(status, closed) for status in (500, 501, 200)]
        status, _, _ = await race(made, hedging(1.0, max_hedges=2))

        assert (200, [500, 501]) == (status, closed)

    async def test_failure_in_the_moment_of_a_good_answer_leaves_nothing(self):
        """The task of the loser has a failure, whose frames have the race."""
        answers = [after(1.0, 200), after(0.5, ConnectionResetError())]
        async with session(answers, hedging(0.5)) as client:
            with nothing_to_collect():
                await client.get(URL)
                await asyncio.sleep(0.1)


class TestCancellation:
    """A call that is cancelled leaves nothing behind."""

    @pytest.mark.parametrize("moment", [0.0, 0.25, 0.5, 0.75, 1.25])
    async def test_a_cancelled_call_cancels_all(self, moment):
        """Before, in and after the moment at which the hedge goes out."""
        ended = []

        async def slow(ctx, request):
            try:
                await asyncio.sleep(9.0)
            finally:
                ended.append(ctx.attempt)

        limiter = Recording()
        decorator = hedging(0.5, max_hedges=2, limiter=limiter)
        outcome, stopped, log = await race([slow] * 3, decorator, cancel_after=moment)

        assert isinstance(outcome, TimeoutError)
        assert moment == stopped
        assert len(log.children) == len(ended)
        assert [False] * len(log.children) == [x.superseded for x in log.children]
        assert all(each.is_complete for each in log.children)
        assert isinstance(log.response_cause, asyncio.CancelledError)
        hedges = len(log.children) - 1
        assert hedges == sum(told.startswith("end") for told in limiter.heard)

    @pytest.mark.parametrize(("status", "told"), [(201, [201]), (404, [])])
    async def test_the_answer_is_closed_that_came_too_late(self, status, told):
        """Cancelled while losers end, the caller gets no answer, raised or not."""
        closed = []
        caller = None

        @client_decorator
        async def inside(delegate, ctx, request):
            try:
                return await delegate.execute(ctx, request)
            finally:
                if ctx.log.superseded:
                    caller.cancel()

        limiter = Recording()
        decorator = hedging(0.5, limiter=limiter)
        answers = [after(9.0, 200), watched(status, closed)]
        async with session(answers, raising, inside, decorator) as client:
            caller = asyncio.create_task(client.request("GET", URL))
            with pytest.raises(asyncio.CancelledError):
                await caller

        assert told == closed
        assert ["acquire 1 NoneType", "end 1"] == limiter.heard

    async def test_permits_end_also_if_the_caller_is_cancelled_once_more(self):
        """As the requests end."""
        caller = None

        async def slow(ctx, request):
            try:
                await asyncio.sleep(9.0)
            finally:
                caller.cancel()

        limiter = Recording()
        async with session([slow, slow], hedging(0.5, limiter=limiter)) as client:
            caller = asyncio.create_task(client.request("GET", URL))
            await asyncio.sleep(0.75)
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller

        assert ["acquire 1 NoneType", "end 1"] == limiter.heard

    async def test_a_request_that_is_cancelled_from_within_ends_the_call(self):
        """As without hedging, where its task is cancelled."""

        async def cancelled(ctx, request):
            raise asyncio.CancelledError("from within")

        async with session([cancelled], hedging(0.5)) as client:
            with pytest.raises(asyncio.CancelledError):
                await client.get(URL)

    async def test_a_call_that_is_thrown_away_does_not_wait(self):
        """Its requests are cancelled all the same."""
        async with session([after(9.0, 200)], hedging(0.5)) as client:
            coroutine = client._request("GET", URL)
            coroutine.send(None)
            await asyncio.sleep(0.1)
            coroutine.close()
            await asyncio.sleep(0)

            assert {asyncio.current_task()} == asyncio.all_tasks()

    async def test_a_call_that_is_thrown_away_does_not_wait_for_a_limiter(self):
        """It is told of each hedge that had a permit."""
        limiter = Unhurried()
        answers = [after(9.0, 200)] * 3
        decorator = hedging(0.5, max_hedges=2, limiter=limiter)
        async with session(answers, decorator) as client:
            coroutine = client._request("GET", URL)
            for _ in range(3):
                coroutine.send(None)
                await asyncio.sleep(0.6)
            coroutine.close()
            await asyncio.sleep(0)

        assert ["end", "end"] == limiter.heard
