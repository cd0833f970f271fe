"""The race of a request and its hedges: starts, winners, and losers."""

import asyncio
import contextvars
import sys

import aiohttp
import pytest
from calls import raising
from chains import after, notes_of, refused, retrying
from limiters import Recording
from races import hedging, race, sent

from aioretry_smithy import (
    RateLimit,
    RateLimitingClient,
    ResponseTimeoutError,
    client_decorator,
    is_unprocessed,
)
from aioretry_smithy.testing import ScriptedTransport

NONE = None, None


class BusyError(aiohttp.ClientError):
    """As a rate limit further in raises."""

    retry_after = 1.0


LATER = 503, {"Retry-After": "0"}, b""
BUSY, WRONG, ROUND = BusyError(), ValueError(), aiohttp.TooManyRedirects(None, ())
RACES = {
    "two answers in one moment": (
        [after(1.0, 200), after(0.5, 201)],
        (200, [(0, 200, 1.0), (0.5, None, 0.5)]),
    ),
    "a hedge after each delay": (
        [after(9.0, 200 + number) for number in range(4)],
        (200, [(0, 200, 9.0), (0.5, None, 8.5), (1.0, None, 8.0), (1.5, None, 7.5)]),
    ),
    "a hedge that goes out early starts the delay anew": (
        [after(0.3, 503), after(9.0, 201), after(0.1, 202)],
        (202, [(0, 503, 0.3), (0.3, None, 0.6), (0.8, 202, 0.1)]),
    ),
    "the first one is good when hedges were not": (
        [after(2.0, 200), *[after(0.1, 503)] * 2, after(0.1, OSError())],
        (200, [(0, 200, 2.0), (0.5, 503, 0.1), (0.6, 503, 0.1), (0.7, OSError, 0.1)]),
    ),
    "the first one goes on when hedging ends": (
        [after(2.0, 200), after(0.1, LATER)],
        (200, [(0, 200, 2.0), (0.5, 503, 0.1)]),
    ),
    "no hedge after Retry-After": ([after(0.1, LATER)], (503, [(0, 503, 0.1)])),
    "no hedge after the hint of AWS": (
        [after(0.1, (503, {"x-amz-retry-after": "0"}, b""))],
        (503, [(0, 503, 0.1)]),
    ),
    "no hedge after an error with a hint": ([BUSY], (BUSY, [(0, BusyError, 0)])),
    "no hedge after a mistake": ([WRONG], (WRONG, [(0, ValueError, 0)])),
    "no hedge after too many redirects": (
        [ROUND],
        (ROUND, [(0, aiohttp.TooManyRedirects, 0)]),
    ),
}
"""By name: answers, then what comes of the call and of each request."""

ERROR = aiohttp.ClientResponseError
RAISED = {
    "a good one wins": (
        [after(9.0, 200), after(0.25, 404)],
        (404, [(0, None, 0.75), (0.5, ERROR, 0.25)]),
    ),
    "a bad one sends the next hedge": (
        [after(0.25, 429), after(0.25, 503), after(0.25, 200)],
        (200, [(0, ERROR, 0.25), (0.25, ERROR, 0.25), (0.5, 200, 0.25)]),
    ),
    "one with a hint sends none": ([after(0.25, LATER)], (503, [(0, ERROR, 0.25)])),
    "the first of bad ones counts": (
        [after(0.25, 503), after(0.25, 429), 503, 500],
        (503, [(0, ERROR, 0.25), (0.25, ERROR, 0.25), *[(0.5, ERROR, 0)] * 2]),
    ),
}
"""The same, by name, where an answer is raised for its status."""


@pytest.mark.parametrize(("answers", "expected"), RACES.values(), ids=RACES)
async def test_requests_of_a_race(answers, expected):
    """When each was sent, what it came to and which one counts."""
    outcome, ended, log = await race(answers, hedging(0.5, max_hedges=3))

    assert expected == (outcome, sent(log))
    assert ended == log.duration


@pytest.mark.parametrize(("answers", "expected"), RAISED.values(), ids=RAISED)
async def test_what_is_raised_for_a_status_is_that_answer(answers, expected):
    """It ends a race as an answer with that status does."""
    outcome, _, log = await race(answers, raising, hedging(0.5, max_hedges=3))

    assert expected == (getattr(outcome, "status", outcome), sent(log))


class TestWhoWins:
    """The first good answer wins, of any request."""

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

    @pytest.mark.parametrize("name", ["X-Attempts", None])
    async def test_the_header_is_that_of_the_retrying_client(self, name):
        """Or there is none."""
        transport = ScriptedTransport([503, 201])
        retries = retrying(0.25, retry_count_header=name)
        await race(transport, hedging(1.0), retries)
        first, hedge = (each.headers for each in transport.requests)

        assert ({}, {name: "1"} if name else {}) == (dict(first), dict(hedge))
