"""Answers in place of the server's, in a race of hedges."""

import asyncio

import pytest
from chains import URL, after, now, retrying, session
from races import (
    FALLBACK,
    Quiet,
    StandIn,
    guarded,
    half_open,
    hedging,
    race,
    sent,
    tripped,
    watched,
)
from until import nothing_to_collect

from aioretry_smithy import (
    CircuitBreaker,
    CircuitState,
    HedgingDelay,
    client_decorator,
    new_response,
    unwrap,
)
from aioretry_smithy import HedgingClient as Hedging
from aioretry_smithy.testing import ScriptedTransport


def fallback(ctx, request):
    return new_response(request, FALLBACK)


def hedges_stand_in(seconds):
    """Answer hedges in place of the server, after a while."""

    @client_decorator
    async def slowly(delegate, ctx, request):
        if ctx.log.is_hedge:
            await asyncio.sleep(seconds)
            return new_response(request, FALLBACK)
        return await delegate.execute(ctx, request)

    return slowly


class TestAnswersInPlaceOfTheServer:
    """A good answer of a fallback or a cache says nothing of the server."""

    @pytest.mark.parametrize("retries", [(), (retrying(),)])
    async def test_an_open_circuit_closes_when_the_server_is_back(self, retries):
        """The trial is late, and its hedge gets the fallback; the trial goes on."""
        breaker = await half_open()
        inside = guarded(breaker, fallback=fallback)
        async with session(
            [after(0.5, 200)] * 9, inside, hedging(0.1), *retries
        ) as client:
            statuses = [(await client.get(URL)).status for _ in range(3)]

        assert [200] * 3 == statuses
        assert CircuitState.CLOSED is breaker.state

    async def test_an_outage_that_goes_on_opens_it_again(self):
        """The trial fails, and the caller has the fallback's answer then."""
        breaker = await half_open()
        inside = guarded(breaker, fallback=fallback)
        status, ended, log = await race(
            [after(0.5, 503)], inside, hedging(0.1), retrying()
        )

        assert (FALLBACK, 1.5) == (status, ended)
        assert [(0, 503, 0.5), (0.1, FALLBACK, 0)] == sent(log)
        assert CircuitState.OPEN is breaker.state
        assert (None, FALLBACK) == (log.stop_reason, log.response_status)

    async def test_it_serves_when_the_others_fail(self):
        """Whatever they fail with, and however many there are."""
        answers = [after(2.0, OSError()), after(1.0, 500)]
        stand_in = StandIn(FALLBACK, first=2)
        decorator = hedging(0.1, max_hedges=2)
        status, ended, log = await race(answers, stand_in, decorator)

        assert (FALLBACK, 2.0, 3) == (status, ended, log.total_attempts)
        assert [False] * 3 == [each.superseded for each in log.children]

    async def test_it_serves_when_the_others_are_cut(self):
        """By the timeout of the attempt or by the deadline."""
        slow = [after(9.0, 200)]
        in_time = retrying(attempt_timeout=2.0)
        status, ended, _ = await race(slow, StandIn(FALLBACK), hedging(0.5), in_time)
        start = now()
        late, then, log = await race(
            slow, StandIn(FALLBACK), hedging(0.5), retrying(), seconds=3.0
        )

        assert (FALLBACK, 2.0) == (status, ended)
        assert (FALLBACK, 3.0) == (late, then - start)
        assert 3.0 == log.duration == log.total_duration

    async def test_a_good_answer_in_the_same_moment_wins(self):
        """Whichever request was the earlier one."""
        first = StandIn(first=0)

        @client_decorator
        async def late(delegate, ctx, request):
            """Stand in for the first request, after a while."""
            if ctx.log.is_hedge:
                return await delegate.execute(ctx, request)
            await asyncio.sleep(1.0)
            return new_response(request, FALLBACK)

        status, ended, _ = await race([after(0.5, 200)], first, late, hedging(0.5))

        assert (200, 1.0) == (status, ended)

    async def test_it_is_there_at_once_where_nothing_else_is_under_way(self):
        """With an open circuit or a cache, nobody waits for anything."""
        inside = guarded(tripped(), fallback=fallback)
        status, ended, log = await race([], inside, hedging(0.5))
        hit, then, _ = await race([503], StandIn(FALLBACK), hedging(0.5))

        assert (FALLBACK, 0.0, 1) == (status, ended, log.total_attempts)
        assert (FALLBACK, 0.0) == (hit, then)

    async def test_it_ends_hedging(self):
        """The next one would get the same."""
        decorator = hedging(0.5, max_hedges=9)
        status, ended, log = await race(
            [after(5.0, 200)] * 9, StandIn(FALLBACK), decorator
        )

        assert (200, 5.0, 2) == (status, ended, log.total_attempts)

    async def test_a_bad_one_does_not(self):
        """A hedge may have better luck."""
        decorator = hedging(0.5, max_hedges=2)
        answers = [after(5.0, 200), after(0.1, 202)]
        status, ended, log = await race(answers, StandIn(503), decorator)

        assert (202, 0.6, 3) == (status, ended, log.total_attempts)

    @pytest.mark.parametrize("obeys", [True, False])
    async def test_hedges_that_wait_for_leave_are_not_sent(self, obeys):
        """Leave that is given all the same is given back."""
        told = []

        class Slow(Quiet):
            async def acquire(self, ctx, cause):
                if not told:
                    told.append("first")
                    return True
                try:
                    await asyncio.sleep(1.0)
                except asyncio.CancelledError:
                    told.append("cancelled")
                    if obeys:
                        raise
                return True

            def release(self, ctx):
                told.append("released")

        transport = ScriptedTransport([after(5.0, 200)])
        decorator = hedging(0.5, max_hedges=2, limiter=Slow())
        status, ended, log = await race(transport, hedges_stand_in(0.6), decorator)

        assert (200, 5.0, 2) == (status, ended, log.total_attempts)
        assert ["first", "cancelled", *["released"][obeys:]] == told

    async def test_a_refusal_of_the_limiter_in_the_same_moment(self):
        """It has answered already, and there is nothing to withdraw."""

        class Slow(Quiet):
            asked = 0

            async def acquire(self, ctx, cause):
                self.asked += 1
                if self.asked == 1:
                    return True
                await asyncio.sleep(0.5)
                return False

        decorator = hedging(0.5, max_hedges=2, limiter=Slow())
        status, ended, log = await race(
            [after(5.0, 200)], hedges_stand_in(1.0), decorator
        )

        assert (200, 5.0, 2) == (status, ended, log.total_attempts)

    async def test_of_several_the_first_serves(self):
        """The others are closed, and so are bad answers of the server."""
        closed = []
        gate = asyncio.Event()

        @client_decorator
        async def at_once(delegate, ctx, request):
            """Give two answers in one moment."""
            if ctx.attempt in {2, 3}:
                await gate.wait()
                return watched(FALLBACK + ctx.attempt, closed)
            return await delegate.execute(ctx, request)

        answers = [after(3.0, watched(500, closed)), after(1.0, watched(502, closed))]
        asyncio.get_running_loop().call_later(2.0, gate.set)
        decorator = hedging(0.5, max_hedges=3)
        status, ended, _ = await race(answers, at_once, decorator)

        assert (FALLBACK + 2, 3.0) == (status, ended)
        assert [FALLBACK + 3, 502, 500] == closed

    async def test_a_good_answer_of_the_server_closes_it(self):
        """Nobody else would."""
        closed = []
        response = watched(FALLBACK, closed)
        status, _, _ = await race([after(2.0, 200)], StandIn(response), hedging(0.5))

        assert (200, [FALLBACK]) == (status, closed)

    async def test_a_cancelled_call_closes_it(self):
        """And the request that it waited for is cancelled."""
        closed = []
        response = watched(FALLBACK, closed)
        outcome, ended, _ = await race(
            [after(9.0, 200)], StandIn(response), hedging(0.5), cancel_after=2.0
        )

        assert isinstance(outcome, TimeoutError)
        assert (2.0, [FALLBACK]) == (ended, closed)

    @pytest.mark.parametrize("samples", [1, 3])
    async def test_it_is_no_sample(self, samples):
        """A fallback's quick answers do not make the delay short."""
        breaker = tripped()
        delay = HedgingDelay.percentile(minimum_samples=samples)
        inside = guarded(breaker, fallback=fallback)
        async with session([after(1.0, 200)] * 9, inside, hedging(delay)) as client:
            for _ in range(9):
                await client.get(URL)
            hedges = unwrap(client, Hedging)
            before = dict(hedges.delays)
            breaker.enter_state(CircuitState.CLOSED)
            for _ in range(samples):
                await client.get(URL)
            measured = hedges.delays["localhost:80"]
            breaker.enter_state(CircuitState.OPEN)
            for _ in range(99):
                await client.get(URL)

            assert {"localhost:80": None} == before
            assert 1.0 <= measured == hedges.delays["localhost:80"]

    async def test_answers_of_attempts_that_a_decorator_makes_are_the_server_s(self):
        """It derives a context for each, and their logs say that they were sent."""

        @client_decorator
        async def again(delegate, ctx, request):
            response = None
            for _ in range(2):
                response = await delegate.execute(ctx.derive(request), request)
            return response

        answers = [after(9.0, 200), after(0.1, 201), after(0.1, 202)]
        status, ended, _ = await race(answers, again, hedging(0.5))

        assert (202, 0.7) == (status, ended)

    async def test_a_fallback_after_a_send_is_none_of_the_server_s(self):
        """A decorator sent twice, and the circuit was open the second time."""
        breaker = CircuitBreaker(minimum_request_threshold=1)
        inside = guarded(breaker, fallback=fallback)

        @client_decorator
        async def twice_in_a_hedge(delegate, ctx, request):
            response = await delegate.execute(ctx, request)
            if response.status == 503:
                response = await delegate.execute(ctx, request)
            return response

        answers = [after(2.0, 200), 503]
        status, ended, log = await race(answers, inside, twice_in_a_hedge, hedging(0.5))

        assert (200, 2.0) == (status, ended)
        assert (FALLBACK, True) == (
            log.children[1].response_status,
            log.children[1].sent,
        )

    async def test_nothing_is_left_for_the_collector(self):
        """Neither after the server's answer, nor after its failure."""
        answers = [after(1.0, 200), after(1.0, 503), after(1.0, OSError())]
        stand_in = StandIn(FALLBACK)
        async with session(answers, stand_in, hedging(0.5)) as client:
            with nothing_to_collect():
                for _ in range(3):
                    stand_in.passed, stand_in.answers = 1, [FALLBACK]
                    await client.get(URL)
                await asyncio.sleep(0.1)
