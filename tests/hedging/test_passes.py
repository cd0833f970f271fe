"""Attempts that are hedged: passes in one attempt, and deadlines."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from chains import URL, after, refused, retrying, session, silence
from limiters import Recording
from races import hedging, race, sent
from until import nothing_to_collect

from aioretry_smithy import (
    AttemptTimeoutError,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RefreshingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryStrategy,
    client_decorator,
    is_unprocessed,
    smithy,
)


@client_decorator
async def impatient(delegate, ctx, request):
    """Give up the first pass after a second, and ask once more."""
    with suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            return await delegate.execute(ctx, request)
    return await delegate.execute(ctx, request)


def of_two(number):
    """Make a decorator that asks twice, one after the other, and takes one answer."""

    @client_decorator
    async def asking(delegate, ctx, request):
        answers = [await delegate.execute(ctx, request) for _ in range(2)]
        answers.pop(1 - number).close()
        return answers.pop()

    return asking


def racing(seen):
    """Make a decorator that asks twice at once, and takes the first answer."""

    @client_decorator
    async def first_of_two(delegate, ctx, request):
        tasks = [asyncio.create_task(delegate.execute(ctx, request)) for _ in "ab"]
        done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in rest:
            each.cancel()
        await asyncio.wait(rest)
        seen.append(ctx.log.response_status)
        return done.pop().result()

    return first_of_two


async def test_a_second_pass_is_judged_by_its_own_answer():
    """Not by the first one, which was given up: a 503 is retried."""
    answers = [after(9.0, 200), after(0.5, 503), 502, 201]
    status, ended, log = await race(answers, hedging(5.0), impatient, retrying(0.25))

    assert (201, 1.75) == (status, ended)
    cancelled = asyncio.CancelledError
    requests = [(0, cancelled, 1.0), (1.0, 503, 0.5), (1.5, 502, 0), (1.75, 201, 0)]
    assert requests == sent(log)
    # After the request of its attempt that was sent first.
    assert [None, None, 0.25, None] == [each.delay for each in log.children]


async def test_each_pass_has_losers_of_its_own():
    """A request that won one is not superseded in the other."""
    answers = [after(9.0, 200), 201, after(9.0, 202), after(0.25, 203)]
    status, ended, log = await race(answers, hedging(0.5), of_two(1), retrying(0.25))

    assert (203, 1.25) == (status, ended)
    assert [(0, None, 0.5), (0.5, 201, 0), (0.5, None, 0.75), (1.0, 203, 0.25)] == sent(
        log
    )
    assert [False, True, False, True] == [each.is_hedge for each in log.children]
    assert (203, 4) == (log.response_status, log.total_attempts)


async def test_the_answer_that_is_taken_counts():
    """Also where another pass has ended after it."""
    answers = [after(0.25, 201), after(0.25, 202)]
    status, ended, log = await race(answers, hedging(0.5), of_two(0), retrying(0.25))

    assert (201, 0.5) == (status, ended)
    assert (201, 2) == (log.response_status, log.total_attempts)
    assert [(0, 201, 0.25), (0.25, 202, 0.25)] == sent(log)


async def test_a_bad_answer_that_is_taken_is_retried():
    """Though the pass after it brought a good one."""
    answers = [500, 503, 202, 201, 203]
    status, _, log = await race(answers, hedging(0.5), of_two(0), retrying(0.25))

    assert (201, 5) == (status, log.total_attempts)
    assert [500, 503, 202, 201, 203] == [each.response_status for each in log.children]


async def test_the_quicker_of_two_passes_counts():
    """Giving up the other one changes nothing of its log."""
    seen = []
    answers = [after(9.0, 200), after(0.25, 201)]
    status, ended, log = await race(answers, hedging(5.0), racing(seen), retrying(0.25))

    assert (201, 0.25) == (status, ended)
    cancelled = asyncio.CancelledError
    assert [(0, cancelled, 0.25), (0, 201, 0.25)] == sent(log)
    assert [201] == seen
    assert (201, None) == (log.response_status, log.response_cause)


def refreshed_outside():
    """Return a chain of decorators that fetch a token around hedged requests."""

    async def fetch():
        return "a token"

    refreshing = RefreshingClient.new_decorator(fetch, hosts=["http://localhost"])
    return hedging(0.5), refreshing, retrying(0.25)


async def test_a_refreshed_request_is_no_hedge():
    """Though the one that was refused before it was one."""
    answers = [after(9.0, 200), 401, after(0.75, 201), 202]
    status, ended, log = await race(answers, *refreshed_outside())

    assert (202, 1.0) == (status, ended)
    assert [False, True, False, True] == [each.is_hedge for each in log.children]
    assert [True, False, True, False] == [each.superseded for each in log.children]


async def test_a_race_after_a_refused_token_has_no_other_request():
    """The one that was begun with the new token is the first of the race."""
    answers = [401, after(0.75, 201), 202]
    status, ended, log = await race(answers, *refreshed_outside())

    assert (202, 0.5) == (status, ended)
    assert [(0, 401, 0), (0, None, 0.5), (0.5, 202, 0)] == sent(log)
    assert 3 == log.total_attempts


async def test_a_derived_request_that_is_hedged_ends_with_its_attempt():
    """That of the retrying client has sent nothing itself, and ends as it does."""

    @client_decorator
    async def deriving(delegate, ctx, request):
        return await delegate.execute(ctx.derive(request), request)

    answers = [after(9.0, 200), 201]
    status, ended, log = await race(answers, hedging(0.5), deriving, retrying(0.25))

    assert (201, 0.5) == (status, ended)
    assert [(0, 201, 0.5), (0, None, 0.5), (0.5, 201, 0)] == sent(log)


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
