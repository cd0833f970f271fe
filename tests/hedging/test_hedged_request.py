"""The race of a request and its hedges: starts, winners, and losers."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import weakref
from contextlib import suppress

import aiohttp
import pytest
from chains import URL, after, notes_of, now, refused, retrying, session, silence, twice
from left_over import nothing_to_collect
from limiters import Recording
from races import hedging, race, sent, stubborn, watched

from aioretry_smithy import (
    AttemptTimeoutError,
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    FailFastError,
    HedgingClient,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryStrategy,
    UnprocessedRequestError,
    capture_logs,
    client_decorator,
    is_unprocessed,
    smithy,
)
from aioretry_smithy.testing import ScriptedTransport

NONE = None, None


class TestWhoWins:
    """The first good answer wins, of any request."""

    async def test_a_request_that_is_answered_in_time_has_no_hedge(self):
        """There is one request, and its log says nothing of hedges."""
        status, ended, log = await race([after(0.5, 200)], hedging(0.6))

        assert (200, 0.5, [(0, 200, 0.5)]) == (status, ended, sent(log))
        assert (False, False) == (log.children[0].is_hedge, log.children[0].superseded)

    async def test_a_hedge_that_is_quicker_wins(self):
        """It is sent when the delay has passed; the first request is given up."""
        answers = [after(9.0, 200), after(0.25, 201)]
        status, ended, log = await race(answers, hedging(0.5))

        assert (201, 0.75) == (status, ended)
        assert [(0, None, 0.75), (0.5, 201, 0.25)] == sent(log)
        assert [False, True] == [each.is_hedge for each in log.children]
        assert [True, False] == [each.superseded for each in log.children]
        assert (201, 2, 0.75) == (log.response_status, log.total_attempts, log.duration)
        assert isinstance(log.children[0].response_cause, asyncio.CancelledError)
        assert all(each.is_complete for each in log.children)

    async def test_a_first_request_that_is_quicker_wins(self):
        """Then the hedge is given up."""
        answers = [after(0.75, 200), after(9.0, 201)]
        status, ended, log = await race(answers, hedging(0.5))

        assert (200, 0.75) == (status, ended)
        assert [(0, 200, 0.75), (0.5, None, 0.25)] == sent(log)

    async def test_of_two_answers_in_one_moment_the_earlier_request_wins(self):
        """The other one is given up, although it has an answer."""
        answers = [after(1.0, 200), after(0.5, 201)]
        status, ended, log = await race(answers, hedging(0.5))

        assert (200, 1.0) == (status, ended)
        assert [(0, 200, 1.0), (0.5, None, 0.5)] == sent(log)

    async def test_a_hedge_follows_after_each_delay(self):
        """As many as there may be; then the last one is waited for."""
        answers = [after(9.0, 200 + number) for number in range(4)]
        status, ended, log = await race(answers, hedging(0.5, max_hedges=3))

        assert (200, 9.0) == (status, ended)
        assert [0, 0.5, 1.0, 1.5] == [start for start, *_ in sent(log)]

    async def test_without_a_delay_both_are_sent_at_once(self):
        """A delay of 0 doubles the requests."""
        status, ended, log = await race([after(2.0, 200), after(1.0, 201)], hedging(0))

        assert (201, 1.0) == (status, ended)
        assert [(0, None, 1.0), (0, 201, 1.0)] == sent(log)

    @pytest.mark.parametrize("status", [100, 204, 301, 404, 428, 430, 499])
    async def test_what_no_retry_would_change_is_good(self, status):
        """An error of the client's is an answer."""
        outcome, ended, log = await race([status], hedging(1.0))

        assert (status, 0.0, 1) == (outcome, ended, log.total_attempts)


class TestBadAnswers:
    """The next hedge does not wait."""

    @pytest.mark.parametrize(
        "bad", [408, 429, 500, 503, TimeoutError(), ConnectionResetError(), refused()]
    )
    async def test_a_bad_answer_sends_a_hedge_at_once(self, bad):
        """So does a failure that another request might not meet."""
        answers = [after(0.1, bad), after(0.2, 200)]
        status, ended, log = await race(answers, hedging(1.0))

        assert (200, 0.3) == (status, ended)
        kind = bad if isinstance(bad, int) else type(bad)
        assert [(0, kind, 0.1), (0.1, 200, 0.2)] == sent(log)

    async def test_a_hedge_that_goes_out_early_starts_the_delay_anew(self):
        """The next one comes a delay after it."""
        answers = [after(0.3, 503), after(9.0, 201), after(0.1, 202)]
        status, ended, log = await race(answers, hedging(0.5, max_hedges=2))

        assert (202, 0.9) == (status, ended)
        assert [(0, 503, 0.3), (0.3, None, 0.6), (0.8, 202, 0.1)] == sent(log)

    async def test_the_first_request_may_be_good_yet(self):
        """A hedge that fails ends nothing."""
        answers = [after(2.0, 200), after(0.1, 503), after(0.1, OSError())]
        status, ended, log = await race(answers, hedging(0.5, max_hedges=2))

        assert (200, 2.0, 3) == (status, ended, log.total_attempts)

    async def test_of_bad_answers_the_last_response_counts(self):
        """Rather than any exception; the log of the call ends as that request."""
        answers = [(503, b"a"), after(0.5, (502, b"b")), OSError(), OSError()]
        async with session(answers, hedging(1.0, max_hedges=3)) as client:
            response = await client.get(URL)
            log = RequestLog.of(response)

            assert (502, b"b") == (response.status, await response.read())

        assert (502, 0.5, 4) == (log.response_status, now(), log.total_attempts)

    async def test_of_failures_the_first_counts(self):
        """The very exception; its notes list all requests."""
        first = ConnectionResetError("first")
        answers = [after(0.7, OSError("third")), after(0.1, first), OSError("second")]
        failure, ended, log = await race(answers, hedging(0.5, max_hedges=2))

        assert (first, 0.7) == (failure, ended)
        assert str(first) == str(log.response_cause)
        assert [
            "attempt 1: OSError: third, 0.700 s",
            "attempt 2: ConnectionResetError: first, 0.100 s, hedge after 0.500 s",
            "attempt 3: OSError: second, 0.000 s, hedge after 0.600 s",
        ] == notes_of(failure)

    async def test_failures_that_do_not_count_have_no_frames(self):
        """They would keep alive what the requests had, until the call ends."""
        seen = []

        @client_decorator
        async def outside(delegate, ctx, request):
            try:
                return await delegate.execute(ctx, request)
            finally:
                causes = [each.response_cause for each in ctx.root.log.children]
                seen.extend(each.__traceback__ is None for each in causes)

        await race([OSError("first"), OSError("second")], hedging(0.5), outside)

        assert [False, True] == seen

    async def test_what_another_request_has_sent_was_sent(self):
        """A refused connection beside it leaves open what the server did."""
        alone, _, _ = await race([refused()] * 2, hedging(1.0))
        beside, _, _ = await race([refused(), ConnectionResetError()], hedging(1.0))

        assert [True, False] == [is_unprocessed(each) for each in (alone, beside)]

    @pytest.mark.parametrize("name", ["Retry-After", "x-amz-retry-after"])
    async def test_a_server_that_wants_to_be_left_alone_gets_no_hedge(self, name):
        """Be it for no time at all."""
        answer = 503, {name: "0"}, b""
        status, ended, log = await race([after(0.1, answer)], hedging(0.5))

        assert (503, 0.1, 1) == (status, ended, log.total_attempts)

    @pytest.mark.parametrize("kind", [ValueError, aiohttp.TooManyRedirects])
    async def test_a_permanent_failure_ends_hedging(self, kind):
        """The next request would fail in the same way."""
        error = ValueError() if kind is ValueError else kind(None, ())
        failure, ended, log = await race([after(0.1, error)], hedging(0.5))

        assert (error, 0.1, 1) == (failure, ended, log.total_attempts)

    async def test_what_is_under_way_goes_on_when_hedging_ends(self):
        """The first request may have a good answer all the same."""
        answers = [after(2.0, 200), after(0.1, (503, {"Retry-After": "9"}, b""))]
        status, ended, log = await race(answers, hedging(0.5, max_hedges=3))

        assert (200, 2.0, 2) == (status, ended, log.total_attempts)

    async def test_an_error_that_says_retry_after_ends_hedging(self):
        """As a rate limit further in does."""

        class BusyError(aiohttp.ClientError):
            retry_after = 1.0

        _, _, busy = await race([BusyError()], hedging(0.5))
        limited = RateLimitingClient.new_decorator(RateLimit(1, per=60), timeout=0)
        with capture_logs() as logs:
            async with session([200], limited, hedging(0.5)) as client:
                await client.get(URL)
                with pytest.raises(UnprocessedRequestError):
                    await client.get(URL)

        assert [1, 1, 1] == [log.total_attempts for log in (busy, *logs)]

    async def test_an_open_circuit_ends_hedging(self):
        """It would refuse the next request too."""
        breaker = CircuitBreaker(minimum_request_threshold=1)
        guarded = CircuitBreakerClient.new_decorator(breaker)
        status, _, log = await race([500], guarded, hedging(0.5, max_hedges=5))

        assert (500, [(0, 500, 0), (0, FailFastError, 0)]) == (status, sent(log))

    async def test_a_full_queue_ends_hedging(self):
        """More requests are no help there."""
        limit = ConcurrencyLimit.fixed(1)
        limited = ConcurrencyLimitingClient.new_decorator(limit, max_pending=0)
        answers = [after(2.0, 200)]
        status, ended, log = await race(answers, limited, hedging(0.5, max_hedges=5))

        assert (200, 2.0, 2) == (status, ended, log.total_attempts)


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

    async def test_losers_count_for_nobody(self):
        """No circuit breaker, no concurrency limit and no retry limiter counts it."""
        breaker = CircuitBreaker()
        samples = []

        class Limit(ConcurrencyLimit):
            limit = 5

            def on_sample(self, round_trip, in_flight, dropped):
                samples.append((round_trip, dropped))

        limit = Limit()
        heard = Recording()
        status, _, _ = await race(
            [after(9.0, 200), after(0.25, 201)],
            ConcurrencyLimitingClient.new_decorator(limit),
            CircuitBreakerClient.new_decorator(breaker),
            hedging(0.5),
            retrying(limiter=heard),
        )

        assert 201 == status
        assert (1, 0) == (breaker.event_count.success, breaker.event_count.failure)
        assert ([(0.25, False)], 0) == (samples, limit.in_flight)
        assert ["success 2"] == heard.heard

    async def test_they_are_marked_before_they_hear_of_it(self):
        """A decorator that is cancelled can tell why."""
        seen = []

        @client_decorator
        async def inside(delegate, ctx, request):
            try:
                return await delegate.execute(ctx, request)
            except asyncio.CancelledError:
                seen.append((ctx.attempt, ctx.log.superseded))
                raise

        await race([after(9.0, 200), 201], inside, hedging(0.5))

        assert [(1, True)] == seen

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


class TestLimiter:
    """It is asked before each hedge, as before a retry."""

    async def test_it_is_asked_with_the_request_before(self):
        """And with its failure; each permit comes to an end."""
        limiter = Recording()
        answers = [after(9.0, 200), after(0.1, OSError()), after(0.1, 202)]
        decorator = hedging(0.5, max_hedges=2, limiter=limiter)
        status, ended, _ = await race(answers, decorator)

        assert (202, 0.7) == (status, ended)
        assert [
            "acquire 1 NoneType",
            "acquire 2 OSError",
            "end 1",
            "end 2",
        ] == limiter.heard

    async def test_its_refusal_ends_hedging(self):
        """It is not asked again in this attempt."""
        limiter = Recording(permits=1)
        answers = [after(9.0, 200), after(0.1, 503)]
        decorator = hedging(0.5, max_hedges=5, limiter=limiter)
        status, ended, log = await race(answers, decorator)

        assert (200, 9.0, 2) == (status, ended, log.total_attempts)
        assert ["acquire 1 NoneType", "acquire 2 NoneType", "end 1"] == limiter.heard

    async def test_a_refusal_after_the_last_failure_is_the_end(self):
        """Nothing is under way, and nothing follows."""
        status, ended, _ = await race([503], hedging(1.0, limiter=Recording(permits=0)))

        assert (503, 0.0) == (status, ended)

    async def test_an_answer_does_not_wait_for_it(self):
        """Nor does the permit that it was asked for count."""
        limiter = Recording(takes=5.0)
        decorator = hedging(0.5, limiter=limiter)
        status, ended, log = await race([after(1.0, 200)], decorator)

        assert (200, 1.0, 1) == (status, ended, log.total_attempts)
        assert ["acquire 1 NoneType"] == limiter.heard

    @pytest.mark.parametrize(("permits", "told"), [(1, ["release 1"]), (0, [])])
    async def test_a_permit_after_the_answer_is_given_back(self, permits, told):
        """A limiter may ignore that it is cancelled; nothing more is sent."""

        class Stubborn(Recording):
            async def slowly(self):
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.sleep(5.0)
                return self.permits >= 0

        limiter = Stubborn(permits, takes=5.0)
        decorator = hedging(0.5, limiter=limiter)
        status, ended, log = await race([after(1.0, 200)], decorator)

        assert (200, 1.0, 1) == (status, ended, log.total_attempts)
        assert ["acquire 1 NoneType", *told] == limiter.heard

    async def test_it_is_asked_for_the_next_hedge_while_it_thinks(self):
        """The request before is the last one that was sent."""
        limiter = Recording(takes=0.8)
        decorator = hedging(0.5, max_hedges=2, limiter=limiter)
        answers = [after(9.0, 200), after(9.0, 201), after(0.1, 202)]
        status, ended, log = await race(answers, decorator)

        assert (202, 1.9) == (status, ended)
        assert ["acquire 1 NoneType"] * 2 + ["end 1"] * 2 == limiter.heard
        assert [0, 1.3, 1.8] == [start for start, *_ in sent(log)]

    async def test_a_permit_that_comes_too_late_is_given_back(self):
        """When there is no time left for the hedge."""
        limiter = Recording(takes=0.9999999)
        decorator = hedging(0.5, limiter=limiter)
        failure, ended, log = await race([after(9.0, 200)], decorator, seconds=1.5)

        assert (ResponseTimeoutError, 1.5) == (type(failure), ended)
        assert 1 == log.total_attempts
        assert ["acquire 1 NoneType", "release 1"] == limiter.heard


class TestDeadlines:
    """A hedge ends when the attempt ends that it belongs to."""

    async def test_the_timeout_of_the_attempt_is_that_of_its_hedges(self):
        """It begins with the first request."""
        failure, ended, log = await race(
            [after(9.0, 200), after(9.0, 201)],
            hedging(0.5),
            retrying(limiter=Recording(0), attempt_timeout=2.0),
        )

        assert isinstance(failure, AttemptTimeoutError)
        assert ("attempt 1 had 2.000 s", 2.0) == (str(failure), ended)
        assert [2.0, 1.5] == [each.response_timeout for each in log.children]

    async def test_no_hedge_follows_after_the_deadline(self):
        """When the first request has run into it."""
        failure, ended, log = await race(
            [after(9.0, 200)],
            hedging(2.0, max_hedges=2),
            retrying(limiter=Recording(0), attempt_timeout=2.0),
        )

        assert isinstance(failure, AttemptTimeoutError)
        assert (2.0, 1) == (ended, log.total_attempts)


class TestDeadlineOfTheCall:
    """A race that it cuts says so, whatever happened before."""

    @pytest.mark.parametrize(
        "retries",
        [
            (),
            (retrying(0.1),),
            (retrying(RetryStrategy.never()),),
            (retrying(smithy.StandardRetryStrategy()),),
        ],
        ids=["no retries", "retries", "never", "smithy"],
    )
    @pytest.mark.parametrize(
        "first", [ConnectionResetError("first"), aiohttp.SocketTimeoutError("first")]
    )
    async def test_it_is_the_failure_and_the_first_one_its_cause(self, first, retries):
        """The hedge had no answer in time."""
        answers = [after(0.5, first), silence]
        failure, ended, log = await race(answers, hedging(1.0), *retries, seconds=5.1)

        assert (ResponseTimeoutError, 5.1) == (type(failure), ended)
        assert first is failure.__cause__
        assert 5.1 == log.duration
        assert isinstance(log.response_cause, ResponseTimeoutError)
        assert ("deadline" if retries else None) == log.stop_reason
        assert [(0, type(first), 0.5), (0.5, ResponseTimeoutError, 4.6)] == sent(log)
        assert failure is not RequestLog.of(failure).children[0].response_cause

    async def test_failure_of_an_earlier_attempt_is_its_cause(self):
        """The last one that was given up, as without hedges."""
        earlier = OSError("earlier")
        answers = [earlier, earlier, after(0.5, OSError("first")), silence]
        chain = hedging(1.0), retrying(0.5)
        failure, ended, _ = await race(answers, *chain, seconds=5.0)

        assert (ResponseTimeoutError, 5.0) == (type(failure), ended)
        assert earlier is failure.__cause__

    @pytest.mark.parametrize("retries", [(), (retrying(0.1),)])
    async def test_several_that_it_cuts_fail_once(self, retries):
        """There is no error of the deadline from one of the deadline."""
        failure, ended, _ = await race(
            [silence, silence], hedging(1.0), *retries, seconds=5.0
        )
        whole = [failure]
        while whole[-1].__cause__ is not None:
            whole.append(whole[-1].__cause__)

        assert 5.0 == ended
        named = ["the deadline passed, attempts: 1"] * len(retries)
        assert [*named, "the call had 5.000 s"] == [
            str(each) for each in whole if type(each) is ResponseTimeoutError
        ]

    async def test_a_wait_for_a_place_that_it_cuts(self):
        """The hedge was not sent, and the failure of the first one counts."""
        first = ConnectionResetError("first")
        limiting = ConcurrencyLimitingClient.new_decorator(
            ConcurrencyLimit.fixed(1), timeout=None
        )

        @client_decorator
        async def fail_first(delegate, ctx, request):
            """Let the first request fail before it asks for a place."""
            if not ctx.log.is_hedge:
                await asyncio.sleep(0.5)
                raise first
            return await delegate.execute(ctx, request)

        async with session([silence], limiting, timeout=9.0) as other:
            busy = asyncio.create_task(other.get(URL))
            chain = limiting, fail_first, hedging(1.0), retrying(0.1)
            failure, ended, _ = await race([], *chain, seconds=5.0)
            busy.cancel()

        assert (ResponseTimeoutError, 5.0) == (type(failure), ended)
        assert first is failure.__cause__

    async def test_an_answer_is_handed_over_all_the_same(self):
        """The last one, bad as it is."""
        status, ended, log = await race(
            [after(0.5, 503), silence], hedging(1.0), retrying(0.1), seconds=5.0
        )

        assert (503, 5.0, "deadline") == (status, ended, log.stop_reason)
        assert 5.0 == log.duration

    async def test_a_timeout_of_the_attempt_is_not_the_deadline(self):
        """The first failure counts, and is retried."""
        answers = [after(0.5, OSError()), silence, 200]
        chain = hedging(1.0), retrying(0.5, attempt_timeout=2.0)
        status, ended, _ = await race(answers, *chain, seconds=9.0)

        assert (200, 2.5) == (status, ended)

    async def test_a_failure_before_it_is_the_failure(self):
        """Although there is no time left for another attempt."""
        first = OSError("first")
        answers = [after(0.5, first), after(4.0, OSError("second"))]
        chain = hedging(1.0), retrying(1.0)
        failure, ended, log = await race(answers, *chain, seconds=5.0)

        assert (first, 4.5, "deadline") == (failure, ended, log.stop_reason)

    async def test_it_says_whether_the_server_saw_anything(self):
        """The hedge reached it, though the first request did not."""
        for retries in ((), (retrying(0.1),)):
            answers = [after(0.5, refused()), silence]
            failure, _, _ = await race(answers, hedging(1.0), *retries, seconds=5.0)

            assert not is_unprocessed(failure)

    async def test_it_leaves_nothing_for_the_collector(self):
        """Neither with retries nor without."""
        for retries in ((), (retrying(0.1),)):
            answers = [after(0.5, OSError()), silence]
            chain = hedging(1.0), *retries
            async with session(answers, *chain, timeout=5.0) as client:
                with nothing_to_collect():
                    with suppress(ResponseTimeoutError):
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

    async def test_the_answer_is_closed_that_came_too_late(self):
        """Cancelled while the losers end, the caller gets no answer."""
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
        answers = [after(9.0, 200), watched(201, closed)]
        async with session(answers, inside, decorator) as client:
            caller = asyncio.create_task(client.request("GET", URL))
            with pytest.raises(asyncio.CancelledError):
                await caller

        assert [201] == closed
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

    async def test_the_task_of_the_caller_is_left_alone(self):
        """Nothing that the race does looks to it like a cancellation."""
        await race([after(9.0, 200), after(0.25, 201)], hedging(0.5))

        assert 0 == asyncio.current_task().cancelling()


async def test_requests_have_the_context_variables_of_the_caller():
    """Their values are those of the moment at which each request is decided on."""
    name = contextvars.ContextVar("name")
    seen = []

    async def slow(ctx, request):
        seen.append(name.get())
        await asyncio.sleep(1.0)
        return 200

    name.set("caller")
    await race([slow, slow], hedging(0.5))

    assert ["caller", "caller"] == seen


@pytest.mark.skipif(sys.version_info < (3, 12), reason="new in Python 3.12")
async def test_eager_tasks_are_fine():
    """Requests may begin, and end, before the race looks at them."""
    loop = asyncio.get_running_loop()
    loop.set_task_factory(asyncio.eager_task_factory)
    try:
        quick, _, _ = await race([200], hedging(0.5))
        bad, _, log = await race([503, 201], hedging(0.5))
        slow, ended, _ = await race([after(9.0, 200), 202], hedging(0.5))
    finally:
        loop.set_task_factory(None)

    assert (200, 201, 202, 0.5) == (quick, bad, slow, ended)
    assert [(0, 503, 0), (0, 201, 0)] == sent(log)


async def test_a_wait_for_a_turn_belongs_to_no_hedge():
    """Of a retried call it is that of the attempt before."""
    limited = RateLimitingClient.new_decorator(RateLimit(1, per=1.0))
    answers = [after(9.0, 503), 502, 503, 201]
    status, ended, log = await race(answers, limited, hedging(8.5), retrying(0.25))

    assert (201, 10.5) == (status, ended)
    assert [(0, 503, 9.0), (8.5, 502, 0), (9.5, 503, 0), (10.5, 201, 0)] == sent(log)
    waits = [(each.delay, each.delay_source) for each in log.children]
    assert [(0.5, "rate_limit"), NONE, NONE, NONE] == waits


class TestLogOfTheAttempt:
    """The retrying client sees the request that counts."""

    async def test_the_strategy_sees_the_log_of_what_counts(self):
        """Its status, its number, its hedge."""
        seen = []

        @client_decorator
        async def outside(delegate, ctx, request):
            response = await delegate.execute(ctx, request)
            seen.append((ctx.attempt, ctx.log.attempt, ctx.log.response_status))
            return response

        answers = [after(1.0, 500), after(0.7, 503), after(9.0, 202), 201]
        status, ended, log = await race(answers, hedging(0.5), outside, retrying(0.25))

        assert (201, 1.95) == (status, ended)
        assert [(2, 2, 503), (4, 4, 201)] == seen
        assert [None, 0.25, None, None] == [each.delay for each in log.children]
        assert (201, 1.95) == (log.response_status, log.duration)

    async def test_numbers_and_headers_go_on(self):
        """Each request tells how many were sent before it."""
        transport = ScriptedTransport([503, 502, 503, 201])
        status, ended, log = await race(transport, hedging(1.0), retrying(0.25))
        headers = [
            each.headers.get("armeria-retry-count") for each in transport.requests
        ]

        assert (201, 0.25) == (status, ended)
        assert [None, "1", "2", "3"] == headers
        assert [1, 2, 3, 4] == [each.attempt for each in log.children]
        assert [False, True, False, True] == [each.is_hedge for each in log.children]
        assert [None, 0.25, None, None] == [each.delay for each in log.children]
        assert 4 == log.total_attempts

    @pytest.mark.parametrize("name", ["X-Attempts", None])
    async def test_the_header_is_that_of_the_retrying_client(self, name):
        """Or there is none."""
        transport = ScriptedTransport([503, 201])
        retries = retrying(0.25, retry_count_header=name)
        await race(transport, hedging(1.0), retries)
        first, hedge = (each.headers for each in transport.requests)

        assert ({}, {name: "1"} if name else {}) == (dict(first), dict(hedge))

    async def test_attempts_of_the_retrying_client_are_counted_without_hedges(self):
        """``max_total_attempts`` is the number of races."""
        transport = ScriptedTransport([503] * 4)
        retries = retrying(0.25, max_total_attempts=2)
        status, _, log = await race(transport, hedging(1.0), retries)

        assert (503, 4) == (status, log.total_attempts)
        assert "max_total_attempts" == log.stop_reason


def test_hedging_client_is_where_it_says():
    """Tracebacks and pickles name the facade."""
    assert "aioretry_smithy" == HedgingClient.__module__
