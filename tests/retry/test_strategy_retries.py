"""Strategies and backoffs are asked in turn, and may give certain answers only."""

from __future__ import annotations

import asyncio
import functools
import math
import operator
import re
from dataclasses import dataclass
from unittest.mock import MagicMock

import aiohttp
import pytest
from chains import (
    NOW,
    URL,
    Always,
    bad_argument,
    now,
    response_of,
    retrying,
    session,
    silence,
)

from aioretry_smithy import (
    Backoff,
    RequestLog,
    ResponseTimeoutError,
    RetryStopReason,
    RetryStrategy,
    RetryStrategyWithContent,
    UnprocessedRequestError,
    client_decorator,
    is_unprocessed,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport, ask


class OfArmeriasPage(RetryStrategy):
    """Tells timeouts and what was not processed by their classes."""

    def should_retry(self, ctx, cause):
        if isinstance(cause, (ResponseTimeoutError, UnprocessedRequestError)):
            return NOW
        return NOW if ctx.log.response_status == 409 else None


class Kept:
    """Answers a status with a backoff that is made once."""

    def __init__(self, status):
        self.status = status
        self.backoff = Backoff.exponential()

    def __call__(self, status, cause):
        return self.backoff if status == self.status else None


class Recording(Backoff):
    """Remembers what it was asked."""

    def __init__(self):
        self.asked: list[int] = []

    def next_delay(self, num_attempts_so_far):
        self.asked.append(num_attempts_so_far)
        return 0.0


async def test_attempts_limit_stops_before_the_backoff_is_asked():
    """The backoff is asked once for each retry, never at the limit."""
    backoff = Recording()
    transport = ScriptedTransport([503] * 3)
    await response_of(
        session(transport, retrying(Always(backoff), max_total_attempts=3))
    )

    assert [1, 2] == backoff.asked
    assert 3 == len(transport.requests)


async def test_backoff_that_is_another_object_starts_its_own_count():
    """A, B, A, B always passes 1; A, A, B, B counts on for as long as it lasts."""
    a, b = Recording(), Recording()
    plan = iter([a, b, a, b, b, b])
    strategy = RetryStrategy.on_status(lambda status, cause: next(plan, None))
    await response_of(session([503] * 7, retrying(strategy)))

    assert ([1, 1], [1, 1, 2, 3]) == (a.asked, b.asked)


async def test_backoff_that_has_had_enough_stops_the_call():
    """``with_max_attempts`` counts the first attempt too."""
    strategy = Always(NOW.with_max_attempts(2))
    response = await response_of(session([503] * 3, retrying(strategy)))

    log = RequestLog.of(response)
    assert (2, "backoff_exhausted") == (log.total_attempts, log.stop_reason)


@dataclass(frozen=True)
class Growing(Backoff):
    """A backoff of a user's, of which nobody knows whether it counts."""

    def next_delay(self, num_attempts_so_far):
        return 0.1 * num_attempts_so_far

    def __repr__(self):
        return "Growing()"


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (Backoff.exponential, "Backoff.exponential(0.2, 10.0, 2.0)"),
        (Growing, "Growing()"),
    ],
)
async def test_backoff_made_anew_each_time_warns(make, shown):
    """A strategy that forgets to keep its backoff is warned."""
    strategy = RetryStrategy.on_status(lambda status, cause: make())
    async with session([503] * 3, retrying(strategy, max_total_attempts=3)) as client:
        with pytest.warns(RuntimeWarning) as warned:
            await client.get(URL)

    expected = (
        f"the retry strategy returned a new {shown} that"
        " equals the last one; its count starts again each time, so each delay is the"
        " first one. Make it once and keep it."
    )
    assert [expected] == [str(warning.message) for warning in warned]


@pytest.mark.parametrize(
    "make",
    [
        Backoff.without_delay,
        lambda: Backoff.fixed(0.5),
        lambda: Backoff.random(0.5, 1.5),
        lambda: Backoff.fixed(0.5).with_jitter(0.2),
        lambda: Backoff.random(0.5, 1.5).with_full_jitter(),
        lambda: Backoff.exponential(0.5, 0.5),
        lambda: Backoff.exponential(0.0, 9.0).with_jitter(0.2),
        lambda: Backoff.fibonacci(0.5, 0.5),
        lambda: Backoff.fibonacci(0.0, 9.0),
    ],
)
async def test_backoff_that_counts_nothing_may_be_made_anew(make):
    """Its delays would be the same, so a wait may be computed for each answer."""
    strategy = RetryStrategy.on_status(lambda status, cause: make())
    response = await response_of(
        session([503] * 4, retrying(strategy, max_total_attempts=4))
    )

    assert 4 == RequestLog.of(response).total_attempts


@pytest.mark.parametrize("number", [2, 3])
async def test_equal_backoffs_that_are_kept_do_not_warn(number):
    """Each of several rules has a backoff of its own, which may equal another's."""
    turns = [
        RetryStrategy.on_status(Kept(status)) for status in range(500, 500 + number)
    ]
    strategy = functools.reduce(operator.or_, turns)
    answers = [*range(500, 500 + number)] * 2
    response = await response_of(
        session(answers, retrying(strategy, max_total_attempts=len(answers)))
    )

    assert len(answers) == RequestLog.of(response).total_attempts


@pytest.mark.parametrize("delay", [-1, math.nan, math.inf, "1", True])
async def test_delay_that_is_no_delay_is_an_error_of_the_caller(delay):
    """A backoff of the caller's own that answers nonsense is told so."""

    class Nonsense(Backoff):
        def next_delay(self, num_attempts_so_far):
            return delay

    with bad_argument("next_delay", delay, "finite and >= 0, or None") as caught:
        await response_of(session([503], retrying(Always(Nonsense()))))

    assert RetryStopReason.ERROR == RequestLog.of(caught.value).stop_reason


async def test_answer_that_is_no_backoff_is_an_error_of_the_caller():
    """A strategy that answers True is told what to answer."""
    strategy = RetryStrategy.on_status(lambda status, cause: True)
    expected = r"should_retry: True \(expected: a Backoff, a RetryD"
    with pytest.raises(ValueError, match=expected):
        await response_of(session([503], retrying(strategy)))


class TestNote:
    """The note on the error for a wrong answer, which says whose it was."""

    @pytest.mark.parametrize("is_later", [False, True])
    @pytest.mark.parametrize("before", [None, "plain", "later", "content"])
    @pytest.mark.parametrize("looks", [False, True])
    async def test_it_names_the_class(self, is_later, before, looks):
        """Of several strategies any may be the one, and its frame has ended."""

        class Mine(RetryStrategyWithContent if looks else RetryStrategy):
            def should_retry(self, ctx, cause, *content):
                return later(0.5) if is_later else 0.5

        class Before(
            RetryStrategyWithContent if before == "content" else RetryStrategy
        ):
            def should_retry(self, ctx, cause, *content):
                return later(None) if before == "later" else None

        strategy = Mine() if before is None else Before() | Mine()
        with pytest.raises(ValueError, match=r"^should_retry: 0.5 ") as caught:
            await response_of(session([503], retrying(strategy)))

        (name,) = caught.value.__notes__
        assert re.fullmatch(r"returned by .*<locals>\.Mine", name)

    async def test_it_names_the_function(self):
        """The user has written a function, and no should_retry()."""

        def by_status(status, cause):
            return True

        with pytest.raises(ValueError, match="should_retry: True") as caught:
            await ask(RetryStrategy.on_status(by_status), status=503)

        (name,) = caught.value.__notes__
        assert re.fullmatch(r"returned by .*<locals>\.by_status", name)


async def later(answer):
    return answer


async def test_strategy_may_tell_failures_by_the_classes_of_armerias_page():
    """An attempt that timed out, and one that was turned away on this side."""
    answers = [silence, UnprocessedRequestError("busy"), 409, 200]
    decorator = retrying(OfArmeriasPage(), attempt_timeout=3.0)
    response = await response_of(session(answers, decorator))

    assert (200, 4) == (response.status, RequestLog.of(response).total_attempts)
    assert 3.0 == now()


async def test_error_in_a_strategy_goes_to_the_caller_with_its_context():
    """The attempt's failure is the context, and the log says error."""

    class Broken(RetryStrategy):
        def should_retry(self, ctx, cause):
            raise KeyError("bug")

    failure = aiohttp.ServerDisconnectedError()
    with pytest.raises(KeyError) as caught:
        await response_of(session([failure], retrying(Broken())))

    assert failure is caught.value.__context__
    assert RetryStopReason.ERROR == RequestLog.of(caught.value).stop_reason


async def test_strategy_may_raise_the_failure_itself():
    """That is no cycle of contexts."""

    class Raising(RetryStrategy):
        def should_retry(self, ctx, cause):
            assert cause is not None
            raise cause

    failure = aiohttp.ServerDisconnectedError()
    with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
        await response_of(session([failure], retrying(Raising())))

    assert failure is caught.value
    assert failure.__context__ is None


async def test_response_that_a_decorator_made_is_what_the_strategy_sees():
    """The log of the attempt shows the response that came out of it."""

    @client_decorator
    async def maintenance(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        response.release()
        return new_response(request, 200 if ctx.attempt == 2 else 503)

    response = await response_of(session([200, 200], maintenance, retrying(0.0)))

    log = RequestLog.of(response)
    assert [503, 200] == [child.response_status for child in log.children]


class TestOtherPeoplesCode:
    """Strategies, decorators and exceptions of other people's may do odd things."""

    async def test_frozen_exception_of_a_strategy_is_raised_all_the_same(self):
        """Its context is lost, not the exception."""

        @dataclass(frozen=True)
        class Enough(Exception):  # noqa: N818
            pass

        class Raising(RetryStrategy):
            def should_retry(self, ctx, cause):
                raise Enough

        with pytest.raises(Enough):
            await response_of(
                session([aiohttp.ServerDisconnectedError()], retrying(Raising()))
            )

    async def test_cause_that_a_strategy_peels_off_makes_no_ring(self):
        """The wrapped exception does not become the context of its own wrapping."""

        class Peeling(RetryStrategy):
            def should_retry(self, ctx, cause):
                raise cause.__cause__

        inner, wrapper = KeyError("inner"), aiohttp.ClientError("wrapper")
        wrapper.__cause__ = inner
        with pytest.raises(KeyError):
            await response_of(session([wrapper], retrying(Peeling())))

        assert inner.__context__ is None

    async def test_backoff_with_a_careless_comparison_is_not_compared_with_nothing(
        self,
    ):
        """An ``__eq__`` that expects its own kind meets no other at first."""

        class Careless(Recording):
            def __eq__(self, other):
                return self.asked == other.asked

            __hash__ = Backoff.__hash__

        decorator = retrying(Always(Careless()), max_total_attempts=2)
        response = await response_of(session([503, 200], decorator))

        assert 200 == response.status


async def test_strategy_sees_each_attempt():
    """It gets the child context, with the outcome of that attempt in its log."""
    seen = []

    class Looking(RetryStrategy):
        def should_retry(self, ctx, cause):
            seen.append((ctx.attempt, ctx.log.response_status, type(cause)))
            return NOW

    answers = [503, aiohttp.ServerDisconnectedError, 200]
    await response_of(session(answers, retrying(Looking(), max_total_attempts=3)))

    assert [
        (1, 503, type(None)),
        (2, None, aiohttp.ServerDisconnectedError),
        (3, 200, type(None)),
    ] == seen


async def test_async_strategy_is_awaited():
    """``should_retry`` may be a coroutine function."""

    class Slow(RetryStrategy):
        async def should_retry(self, ctx, cause):
            await asyncio.sleep(0.5)
            return NOW if ctx.log.response_status == 503 else None

    response = await response_of(session([503, 200], retrying(Slow())))

    log = RequestLog.of(response)
    assert (200, 2, 1.0) == (response.status, log.total_attempts, now())
    assert 0.5 == log.duration


async def test_refused_connection_keeps_the_class_that_aiohttp_gave_it():
    """The page's classes do not tell it; ``is_unprocessed()`` does."""
    refused = aiohttp.ClientConnectorError(MagicMock(), ConnectionRefusedError())
    decorator = retrying(OfArmeriasPage())
    with pytest.raises(aiohttp.ClientConnectorError) as caught:
        await response_of(session([refused], decorator))

    assert refused is caught.value
    assert is_unprocessed(refused)
