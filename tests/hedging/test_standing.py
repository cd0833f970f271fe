"""Which outcome of a race counts: a server's, one in its place, or a refusal."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from chains import URL, after, now, refused, retrying, session
from left_over import nothing_to_collect
from races import hedging, race, sent, watched

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
    FailFastError,
    HedgingDelay,
    RateLimit,
    RateLimitError,
    RateLimitingClient,
    RequestLog,
    RetryLimiter,
    RetryStrategy,
    UnprocessedRequestError,
    capture_logs,
    client_decorator,
    new_response,
    unwrap,
)
from aioretry_smithy import HedgingClient as Hedging
from aioretry_smithy.testing import (
    FaultInjectingClient,
    InjectedFault,
    ScriptedTransport,
)

FALLBACK = 203
"""The status by which the tests know an answer that no server gave."""


def fallback(ctx, request):
    return new_response(request, FALLBACK)


def tripped(**settings):
    """Return a circuit that one failure has opened, and whose window has passed."""
    breaker = CircuitBreaker(
        minimum_request_threshold=1, trial_request_interval=3600.0, **settings
    )
    breaker.enter_state(CircuitState.OPEN)
    return breaker


async def half_open(**settings):
    """Return a circuit that lets one trial through."""
    breaker = tripped(circuit_open_window=1.0, **settings)
    await asyncio.sleep(1.0)
    return breaker


def guarded(breaker, **settings):
    return CircuitBreakerClient.new_decorator(breaker, **settings)


class StandIn:
    """Answers in place of the server, from the second request on."""

    def __init__(self, *answers, first=1):
        self.answers = [*answers]
        self.passed = first

    def __call__(self, delegate):
        @client_decorator
        async def answer(delegate, ctx, request):
            if self.passed or not self.answers:
                self.passed -= 1
                return await delegate.execute(ctx, request)
            made = self.answers.pop(0)
            if isinstance(made, Exception):
                raise made
            if isinstance(made, int):
                return new_response(request, made)
            return made

        return answer(delegate)


def hedges_stand_in(seconds):
    """Answer hedges in place of the server, after a while."""

    @client_decorator
    async def slowly(delegate, ctx, request):
        if ctx.log.is_hedge:
            await asyncio.sleep(seconds)
            return new_response(request, FALLBACK)
        return await delegate.execute(ctx, request)

    return slowly


class Quiet(RetryLimiter):
    """Learns nothing."""

    def on_success(self, ctx):
        """Do nothing."""

    def on_failure(self, ctx, cause):
        """Do nothing."""


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


class TestRehearsals:
    """Injected faults count as sent, so that hedging can be rehearsed."""

    async def test_an_injected_answer_wins(self):
        """As that of a server does."""
        # Whether the latency strikes, its share, and whether the status does.
        drawn = iter([0.0, 5.0, 0.0, 0.0, 0.1, 0.0])
        injected = FaultInjectingClient.new_decorator(
            InjectedFault.latency((0.0, 1.0)),
            InjectedFault.status(200),
            random=lambda: next(drawn),
        )
        status, ended, log = await race([], injected, hedging(0.5))

        assert (200, 0.6) == (status, ended)
        assert [True, False] == [each.superseded for each in log.children]
        assert not log.sent

    async def test_an_injected_answer_is_a_sample(self):
        """Or a percentile could not be rehearsed."""
        delay = HedgingDelay.percentile(minimum_samples=2)
        injected = FaultInjectingClient.new_decorator(
            InjectedFault.latency(1.0), InjectedFault.status(200)
        )
        async with session([], injected, hedging(delay)) as client:
            for _ in range(3):
                await client.get(URL)

            assert unwrap(client, Hedging).delays["localhost:80"] >= 1.0

    async def test_an_injected_failure_goes_before_a_refusal(self):
        """Whatever its class is."""
        breaker = await half_open()
        injected = FaultInjectingClient.new_decorator(
            InjectedFault.latency(1.0), InjectedFault.error(UnprocessedRequestError)
        )
        failure, _, _ = await race([], injected, guarded(breaker), hedging(0.5))

        assert isinstance(failure, UnprocessedRequestError)


class TestRefusals:
    """What a server did goes before what this side refused to do."""

    async def test_a_trial_that_fails_is_what_counts(self):
        """Its hedge was refused meanwhile; the retry follows the failure."""
        breaker = await half_open()
        cut = ConnectionResetError("cut")
        answers = [after(0.5, cut), 200]
        retries = retrying(RetryStrategy.failsafe(Backoff.fixed(20.0)))
        status, _, log = await race(answers, guarded(breaker), hedging(0.1), retries)

        assert 200 == status
        assert [
            (0, ConnectionResetError, 0.5),
            (0.1, FailFastError, 0),
            (20.5, 200, 0),
        ] == sent(log)

    @pytest.mark.parametrize(
        "failure",
        [OSError(), TimeoutError(), aiohttp.ServerDisconnectedError(), refused()],
    )
    async def test_failures_go_before_refusals(self, failure):
        """Whichever came first; that of a connection which was refused, too."""
        for refusal in (UnprocessedRequestError("full"), FailFastError(tripped())):
            outcome, ended, _ = await race(
                [after(1.0, failure)], StandIn(refusal), hedging(0.5)
            )

            assert failure is outcome

        assert 2.0 == ended

    async def test_of_refusals_the_first_counts(self):
        """Where there is nothing else."""
        limit = ConcurrencyLimit.fixed(1)
        first = UnprocessedRequestError("first")
        outcome, _, _ = await race(
            [],
            StandIn(first, UnprocessedRequestError("second"), first=0),
            ConcurrencyLimitingClient.new_decorator(limit),
            hedging(0.5),
        )

        assert first is outcome

    async def test_a_limit_hides_no_failure(self):
        """A hedge that found no place in time."""
        limit = ConcurrencyLimit.fixed(1)
        limiting = ConcurrencyLimitingClient.new_decorator(limit, timeout=0.1)
        cut = ConnectionResetError("cut")
        outcome, ended, log = await race([after(1.0, cut)], limiting, hedging(0.5))

        assert (cut, 1.0) == (outcome, ended)
        assert ConcurrencyLimitError is type(log.children[1].response_cause)

    async def test_a_rate_hides_no_failure(self):
        """A hedge whose turn would have come too late."""
        limiting = RateLimitingClient.new_decorator(RateLimit(1, per=60.0), timeout=0)
        cut = ConnectionResetError("cut")
        outcome, ended, log = await race([after(1.0, cut)], limiting, hedging(0.5))

        assert (cut, 1.0) == (outcome, ended)
        assert RateLimitError is type(log.children[1].response_cause)

    async def test_a_bad_answer_goes_before_both(self):
        """As ever."""
        answers = [after(1.0, OSError()), after(0.2, 503)]
        stand_in = StandIn(UnprocessedRequestError("full"), first=2)
        status, ended, log = await race(answers, stand_in, hedging(0.5, max_hedges=2))

        assert (503, 1.0, 3) == (status, ended, log.total_attempts)

    async def test_stop_reason_is_that_of_the_request_that_counts(self):
        """A race of refusals alone was refused."""
        never = retrying(RetryStrategy.never())
        full = ConcurrencyLimitError(ConcurrencyLimit.fixed(1), 0.0, 0)
        cut = [after(1.0, OSError())]
        reasons = []
        for answers, stand_in in (
            (cut, StandIn(full)),
            ([], StandIn(*[full] * 9, first=0)),
        ):
            with capture_logs() as logs:
                async with session(answers, stand_in, hedging(0.5), never) as client:
                    with suppress(Exception):
                        await client.get(URL)
            reasons.append(logs[0].stop_reason)

        assert ["no_retry", "refused"] == reasons


class TestDuration:
    """A call that is hedged lasts as long as the race."""

    @pytest.mark.parametrize("retries", [(), (retrying(RetryStrategy.never()),)])
    @pytest.mark.parametrize(
        ("answers", "stand_in"),
        [
            ([after(0.5, OSError("first")), after(4.6, OSError())], None),
            ([after(5.1, OSError())], UnprocessedRequestError("full")),
            ([after(5.1, OSError())], FALLBACK),
            ([after(0.5, 503), after(4.6, OSError())], None),
        ],
        ids=["failures", "refusal", "stand-in", "bad answer"],
    )
    async def test_the_race_decides(self, answers, stand_in, retries):
        """Not the one of its requests that counts."""
        inside = [] if stand_in is None else [StandIn(stand_in)]
        _, ended, log = await race(answers, *inside, hedging(1.0), *retries)

        assert 5.1 == ended == round(log.duration, 6) == round(log.total_duration, 6)
        assert "5.100 s" in log.render().splitlines()[0]
        assert 5.1 == round(log.to_dict()["duration"], 6)

    async def test_requests_keep_their_own(self):
        """Each log says how long that request took."""
        answers = [after(0.5, OSError("first")), after(4.6, OSError())]
        _, _, log = await race(answers, hedging(1.0))

        assert [0.5, 4.6] == [round(each.duration, 6) for each in log.children]

    async def test_leave_that_was_not_given_is_part_of_it(self):
        """The race ends with it."""

        class Slow(Quiet):
            async def acquire(self, ctx, cause):
                await asyncio.sleep(2.0)
                return False

        _, ended, log = await race([OSError()], hedging(1.0, limiter=Slow()))

        assert 2.0 == ended == log.duration

    async def test_a_winner_s_is_its_own(self):
        """As ever: to the headers."""
        _, _, log = await race([after(9.0, 200), after(0.25, 201)], hedging(0.5))

        assert 0.75 == log.duration

    async def test_a_later_attempt_has_the_last_word(self):
        """The race before it is over."""
        answers = [after(0.5, OSError()), after(4.5, OSError()), after(1.0, 200)]
        chain = hedging(1.0), retrying(3.0)
        status, ended, log = await race(answers, *chain)

        assert (200, 9.0, 9.0) == (status, ended, log.duration)

    async def test_an_answer_from_outside_is_not_changed(self):
        """A decorator has answered while the race went on, which no longer counts."""
        tasks = []

        @client_decorator
        async def impatient(delegate, ctx, request):
            tasks.append(asyncio.ensure_future(delegate.execute(ctx, request)))
            await asyncio.wait(tasks, timeout=2.0)
            return new_response(request, FALLBACK)

        answers = [after(0.5, OSError()), after(4.5, OSError())]
        never = retrying(RetryStrategy.never())
        async with session(answers, hedging(1.0), never, impatient) as client:
            response = await client.get(URL)
            log = RequestLog.of(response)
            with suppress(OSError):
                await tasks[0]

        assert (5.0, 2.0) == (now(), log.duration)
