"""When attempts and waits began and ended, read from the log of a call."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from calls import (
    REQUEST,
    begin,
    begin_body,
    end,
    end_body,
    end_call,
    function,
    http,
    note_delay,
    report,
)
from chains import after, chain, log_of, log_of_cancelled, retrying, retrying_session

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    FailFastError,
    RetryStrategy,
    UnprocessedRequestError,
    client_decorator,
)
from aioretry_smithy._log.timeline import OutcomeKind, Span, timeline


def builder(*answers, **settings):
    strategy = RetryStrategy.failsafe(Backoff.fixed(1.0))
    return chain(answers, retrying(strategy, **settings))


def spans(times):
    parts = [bar.parts for bar in times.bars]
    return [(found.get("attempt"), found.get("wait")) for found in parts]


async def test_attempts_and_waits_follow_each_other():
    """Each wait begins where its attempt ended, and ends where the next begins."""
    chain = builder(after(0.5, 503), after(0.25, 200)).response_timeout(10.0)
    log = await log_of(chain.build())
    times = timeline(log)

    assert [(Span(0.0, 0.5), Span(0.5, 1.5)), (Span(1.5, 1.75), None)] == spans(times)
    assert (1.75, 10.0) == (times.end, times.deadline)
    assert log.children == times.attempts == tuple(bar.log for bar in times.bars)


async def test_wait_ends_where_the_next_attempt_begins():
    """A strategy that takes its time to decide makes a gap, not a longer wait."""

    class Slow(RetryStrategy):
        async def should_retry(self, ctx, cause):
            await asyncio.sleep(2.0)
            return Backoff.fixed(1.0) if ctx.log.response_status == 503 else None

    log = await log_of(retrying_session([503, 200], Slow()))

    assert [(Span(0.0, 0.0), Span(2.0, 3.0)), (Span(3.0, 3.0), None)] == spans(
        timeline(log)
    )


async def test_call_without_retries_is_one_bar():
    """Where nothing retries, the call is its only attempt."""
    ctx = begin()
    await asyncio.sleep(1.0)
    begin_body(ctx)
    await asyncio.sleep(2.0)
    end_body(ctx, 5)
    times = timeline(ctx.log)

    assert [(Span(0.0, 1.0), None)] == spans(times)
    assert Span(1.0, 3.0) == times.bars[0].parts["body"]
    assert (3.0, None) == (times.end, times.deadline)


async def test_wait_before_the_first_attempt_has_a_bar_of_its_own():
    """A rate limiter that makes a call wait at once is seen before all else."""
    ctx = begin()
    note_delay(ctx, 1.5, "rate_limit")
    await asyncio.sleep(1.0)
    assert [(None, Span(0.0, 1.0))] == spans(timeline(ctx.log))
    await asyncio.sleep(1.0)
    attempt = ctx.derive(REQUEST)
    end(attempt, TimeoutError())

    assert [(None, Span(0.5, 2.0)), (Span(2.0, 2.0), None)] == spans(timeline(ctx.log))


async def test_call_under_way_ends_now():
    """A span that has not ended reaches up to now, be it an attempt or a wait."""
    ctx = begin(timeout=60.0)
    first = ctx.derive(REQUEST)
    await asyncio.sleep(2.0)
    times = timeline(ctx.log)
    assert [(Span(0.0, 2.0), None)] == spans(times)
    assert (OutcomeKind.RUNNING, 2.0) == (times.bars[0].outcome, times.end)
    end(first, TimeoutError(), delay=10.0)
    await asyncio.sleep(3.0)

    assert [(Span(0.0, 2.0), Span(2.0, 5.0))] == spans(timeline(ctx.log))


async def test_cancelled_wait_ends_with_the_call():
    """A wait is as long as it was, not as it should have been."""
    log = await log_of_cancelled(builder(after(0.5, 503), 200).build(), 0.75)

    assert [(Span(0.0, 0.5), Span(0.5, 0.75))] == spans(timeline(log))
    assert 0.75 == timeline(log).end


async def test_abandoned_attempt_ends_with_the_call():
    """An attempt that a decorator forgot does not grow for ever."""
    ctx = begin()
    await asyncio.sleep(1.0)
    ctx.derive(REQUEST)
    await asyncio.sleep(1.0)
    end(ctx, TimeoutError())
    await asyncio.sleep(9.0)

    assert [(Span(1.0, 2.0), None)] == spans(timeline(ctx.log))


async def test_attempt_after_the_one_that_was_taken_has_no_length():
    """A call that ends as an earlier attempt ended does not go back in time."""
    ctx = begin()
    first = ctx.derive(REQUEST)
    end(first, TimeoutError())
    await asyncio.sleep(1.0)
    ctx.derive(REQUEST)
    end_call(ctx, first)

    assert [(Span(0.0, 0.0), None), (Span(1.0, 1.0), None)] == spans(timeline(ctx.log))


async def test_second_pass_of_a_decorator_goes_on():
    """After what looked like the end of the call, another attempt may be under way."""
    ctx = begin()
    end(ctx.derive(REQUEST), TimeoutError())
    end(ctx, TimeoutError())
    await asyncio.sleep(1.0)
    ctx.derive(REQUEST)
    await asyncio.sleep(1.0)

    assert [(Span(0.0, 0.0), None), (Span(1.0, 2.0), None)] == spans(timeline(ctx.log))


async def test_call_that_goes_on_has_not_ended():
    """A decorator's first pass has ended, and the call has not."""
    ctx = begin()
    end(ctx, TimeoutError())
    ctx.derive(REQUEST)
    await asyncio.sleep(1.0)
    log = ctx.log

    assert (None, None, None) == (log.response_cause, log.duration, log.total_duration)
    assert not log.is_complete
    assert OutcomeKind.RUNNING == OutcomeKind.of(log)


async def test_decorator_outside_that_passes_twice():
    """The time between a decorator's passes is a gap."""

    @client_decorator
    async def twice(delegate, ctx, request):
        await delegate.execute(ctx, request)
        await asyncio.sleep(2.0)
        return await delegate.execute(ctx, request)

    log = await log_of(builder(503, 404, 200).decorator(twice).build())

    assert [
        (Span(0.0, 0.0), Span(0.0, 1.0)),
        (Span(1.0, 1.0), None),
        (Span(3.0, 3.0), None),
    ] == spans(timeline(log))


async def test_body_may_outlive_the_next_attempt():
    """A response that a decorator kept open is read beside the attempts after it."""
    ctx = begin()
    first = ctx.derive(REQUEST)
    begin_body(first)
    await asyncio.sleep(1.0)
    end(ctx.derive(REQUEST), TimeoutError())
    await asyncio.sleep(1.0)
    end_body(first, 1)
    times = timeline(ctx.log)

    assert Span(0.0, 2.0) == times.bars[0].parts["body"]
    assert 2.0 == times.end


async def test_body_under_way_ends_now():
    """A body that is still being read is shown, also after the next attempt began."""
    ctx = begin()
    first = ctx.derive(REQUEST)
    await asyncio.sleep(1.0)
    begin_body(first)
    end_call(ctx, first)
    await asyncio.sleep(2.0)
    times = timeline(ctx.log)

    assert Span(1.0, 3.0) == times.bars[0].parts["body"]
    assert 3.0 == times.end


async def test_hundreds_of_attempts_keep_their_order():
    """The bars are as many as the attempts that are kept."""
    log = await log_of(builder(*[503] * 300, max_total_attempts=300).build())
    times = timeline(log)

    kept = [*range(1, 51), *range(251, 301)]
    assert kept == [bar.log.attempt for bar in times.bars]
    assert 299.0 == times.end


@pytest.mark.parametrize(
    ("status", "cause", "outcome"),
    [
        (None, None, "running"),
        (200, None, "success"),
        (304, None, "success"),
        (404, None, "failure"),
        (503, ValueError(), "failure"),
        (200, aiohttp.ClientPayloadError(), "error"),
        (None, TimeoutError(), "error"),
        (None, FailFastError(CircuitBreaker(clock=float), 1.0), "refused"),
        (None, UnprocessedRequestError(), "refused"),
        (None, asyncio.CancelledError(), "cancelled"),
        (None, KeyboardInterrupt(), "cancelled"),
    ],
)
async def test_outcome(status, cause, outcome):
    """Each way to end has its class."""
    ctx = begin()
    if status is not None:
        begin_body(ctx, status)
        end_body(ctx, 0, cause)
    elif cause is not None:
        end(ctx, cause)

    assert outcome == OutcomeKind.of(ctx.log)


async def test_timeout_is_counted_from_the_start():
    """The log says how long the call and each attempt might have taken."""
    ctx = begin(timeout=10.0)
    await asyncio.sleep(1.0)
    attempt = ctx.derive(REQUEST, timeout=3.0)
    assert (10.0, 3.0) == (ctx.log.response_timeout, attempt.log.response_timeout)
    ctx.set_response_timeout(5.0)
    attempt.clear_response_timeout()

    assert (6.0, None) == (ctx.log.response_timeout, attempt.log.response_timeout)


async def test_timeout_without_an_end_is_none():
    """Infinity is no limit, and no JSON either."""
    assert begin(timeout=float("inf")).log.response_timeout is None


async def test_timeout_shows_the_figure_that_was_asked_for():
    """A clock with a large value leaves no noise in the last digits."""
    await asyncio.sleep(1e6 + 0.1)

    assert 0.3 == begin(timeout=0.3).log.response_timeout


async def test_calls_inside_count_from_the_start_of_the_outermost():
    """So that all of a tree is on one axis, and its end is that of the last of it."""
    times = timeline(await report())
    first, second = times.bars
    day, rows = first.inside
    failed, succeeded = rows.inside

    assert {"call": (0.0, 0.9)} == rounded(day.parts)
    assert [(0.0, 0.3), (0.6, 0.9)] == [
        rounded(bar.parts)["attempt"] for bar in day.inside
    ]
    assert {"call": (0.9, 1.5)} == rounded(rows.parts)
    assert {"wait": (1.0, 1.4), "attempt": (0.9, 1.0)} == rounded(failed.parts)
    assert {"attempt": (1.4, 1.5)} == rounded(succeeded.inside[0].parts)
    assert {"call": (2.7, 3.6)} == rounded(second.inside[0].parts)
    assert 3.6 == pytest.approx(times.end)


def rounded(parts):
    return {part: tuple(round(at, 6) for at in span) for part, span in parts.items()}


async def test_calls_of_a_call_are_drawn_before_its_attempts():
    """They stand in its own log where a decorator of the user's own retries."""
    ctx = function("fetch")
    inside = http("http://example.com/", ctx.log)
    attempt = ctx.derive(ctx.request)
    await asyncio.sleep(1.0)
    for each in inside, attempt:
        end(each)
    end_call(ctx, attempt)
    bars = timeline(ctx.log).bars

    assert [inside.log, attempt.log] == [bar.log for bar in bars]
    assert 2 * [{"attempt": (0.0, 1.0)}] == [rounded(bar.parts) for bar in bars]


async def test_call_inside_that_goes_on_ends_all():
    """A call that outlives the one around it is drawn to now."""
    ctx = function("fetch")
    http("http://example.com/", ctx.log)
    end(ctx)
    await asyncio.sleep(2.0)

    assert 2.0 == timeline(ctx.log).end


async def test_call_inside_that_waits_for_leave_is_a_wait():
    """It has made no attempt yet."""
    ctx = function("fetch")
    note_delay(http("http://example.com/", ctx.log), 1.0, "rate_limit")
    await asyncio.sleep(1.0)
    (bar,) = timeline(ctx.log).bars[0].inside

    assert {"wait": (0.0, 1.0)} == bar.parts


async def test_function_that_returned_is_a_success():
    """It has no status to tell so."""
    ctx = function("fetch")
    before = OutcomeKind.of(ctx.log)
    end(ctx)

    assert (OutcomeKind.RUNNING, OutcomeKind.SUCCESS) == (
        before,
        OutcomeKind.of(ctx.log),
    )
