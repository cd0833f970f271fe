"""When attempts, waits and connections began and ended, read from the log of a call."""

import asyncio
import re

import aiohttp
import pytest
from calls import (
    REQUEST,
    attempted,
    begin,
    begin_body,
    call_of,
    connect,
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
    AttemptTimeoutError,
    Backoff,
    CircuitBreaker,
    ConnectionTimings,
    FailFastError,
    LogFormatter,
    RetryStrategy,
    UnprocessedRequestError,
)
from aioretry_smithy._failures.failure import note_wait_in_pool
from aioretry_smithy._log.request_log import note
from aioretry_smithy._log.timeline import OutcomeKind, Span, timeline
from aioretry_smithy._log.timeline_svg import draw


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


async def test_call_inside_that_has_waited_shows_it_in_its_bar():
    """It makes no attempts, so the wait is a part of what the call took."""
    ctx = function("fetch")
    inside = http("http://example.com/", ctx.log)
    note_delay(inside, 1.0, "rate_limit")
    await asyncio.sleep(1.5)
    end(inside, 200)
    (bar,) = timeline(ctx.log).bars[0].inside

    assert {"attempt": (0.0, 1.5), "wait": (0.0, 1.0)} == bar.parts
    assert "wait (rate_limit), 0.000 s to 1.000 s" in draw(ctx.log)


async def answered(seconds=1.0, *, reused=False, **parts):
    """Return the log of a call without attempts that waited for its connection."""
    ctx = begin()
    await asyncio.sleep(seconds)
    connect(ctx, reused=reused, **parts)
    end(ctx, 200)
    return ctx.log


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"queued": 0.92}, "in 1.000 s, of which 0.920 s in the pool's queue"),
        ({"dns": 0.2, "connect": 0.1}, "in 1.000 s, of which 0.300 s for a connection"),
        (
            {"queued": 0.2, "dns": 0.2},
            "in 1.000 s, of which 0.200 s in the pool's queue",
        ),
        ({"queued": 0.1, "dns": 0.2}, "in 1.000 s, of which 0.300 s for a connection"),
        ({"connect": 0.09}, "in 1.000 s"),
        ({}, "in 1.000 s"),
    ],
)
async def test_tree_says_where_the_time_went(parts, words):
    """The client's own queue has a name; what hardly counts has no words."""
    log = await answered(**parts)

    assert f"GET http://example.com/  ->  200 OK  {words}" == log.render()


@pytest.mark.parametrize(("seconds", "shown"), [(0.0009, False), (0.001, True)])
async def test_millisecond_is_worth_a_word(seconds, shown):
    """Less is not, of whatever that is a part."""
    log = await answered(0.002, connect=seconds)

    assert shown is ("of which" in log.render())


async def test_rows_of_attempts_have_the_words():
    """So do the notes on the exception; the line of the call has them not."""
    ctx = begin()
    first = await slow_attempt(ctx, 503, 0.25, queued=0.75)
    last = await slow_attempt(ctx, 200, None, reused=True)
    end_call(ctx, last)

    assert (
        "GET http://example.com/  ->  200 OK  in 2.250 s, 2 attempts\n"
        "├─ 1  503 Service Unavailable   1.000 s   of which 0.750 s in the pool's queue"
        ", then waited 0.250 s (backoff)\n"
        "└─ 2  200 OK                    1.000 s"
    ) == ctx.log.render()
    assert (
        "attempt 1: 503 Service Unavailable, 1.000 s, of which 0.750 s in the pool's"
        " queue, then waited 0.250 s (backoff)"
    ) == note(first.log)


async def slow_attempt(ctx, outcome, delay, **parts):
    """Make an attempt of a second that waited for its connection."""
    child = await attempted(ctx, 1.0, outcome, delay)
    connect(child, **parts)
    return child


async def test_request_that_still_waits():
    """What it waits for is said before there is an outcome."""
    ctx = begin()
    connect(ctx)
    call_of(ctx).connection.wait_for("queued", ctx.log.started)
    await asyncio.sleep(0.5)

    assert (
        "GET http://example.com/  ->  no response yet"
        ", 0.500 s in the pool's queue so far"
    ) == ctx.log.render()
    assert Span(0.0, 0.5) == timeline(ctx.log).bars[0].parts["connection"]


async def test_outcome_that_names_the_queue_is_enough():
    """The line does not say it twice; JSON has the seconds."""
    ctx = begin()
    child = ctx.derive(ctx.request)
    await asyncio.sleep(1.0)
    cause = AttemptTimeoutError("attempt 1 had 1.000 s, and was in the pool's queue")
    note_wait_in_pool(cause)
    connect(child, queued=1.0)
    end(child, cause, sent=False)

    _, row = ctx.log.render().splitlines()
    assert "└─ 1  AttemptTimeoutError, in the pool's queue, not sent   1.000 s" == row
    assert 1.0 == child.log.to_dict()["connection"]["queued"]


async def test_call_shows_its_last_attempt():
    """That is the one whose outcome it has; before it has one, the latest."""
    ctx = begin()
    first = await slow_attempt(ctx, 503, None, queued=0.5)
    assert first.log.connection == ctx.log.connection
    second = await slow_attempt(ctx, 200, None, dns=0.25)
    assert second.log.connection == ctx.log.connection
    end_call(ctx, first)

    assert ConnectionTimings(0.5, None, None, reused=False) == ctx.log.connection


async def test_values_are_json():
    """What did not happen is null."""
    log = await answered(queued=0.5, connect=0.25, reused=True)
    expected = {"queued": 0.5, "dns": None, "connect": 0.25, "reused": True}

    assert expected == log.to_dict()["connection"]
    assert '"connection": {"queued": 0.5, ' in LogFormatter.json().format_response(log)
    assert (await answered()).to_dict()["connection"] == {
        "queued": None,
        "dns": None,
        "connect": None,
        "reused": False,
    }


async def test_line_of_text_has_the_parts():
    """Not that of a call with attempts, nor of a connection that was there."""
    log = await answered(queued=0.5, connect=0.25)
    ctx = begin()
    end_call(ctx, await slow_attempt(ctx, 200, None, queued=0.5))
    text = LogFormatter.text().format_response

    assert ", connection={queued=0.500s, connect=0.250s}, scheme=" in text(log)
    assert "connection=" not in text(ctx.log)
    assert "connection=" in text(ctx.log.children[0])
    assert "connection=" not in text(await answered(reused=True))


async def test_beginning_of_a_bar_is_lighter_in_a_picture():
    """It lies over the bar, with its words; a short wait is not drawn."""
    ctx = begin()
    end_call(ctx, await slow_attempt(ctx, 200, None, queued=0.75))
    log = ctx.log
    (bar,) = timeline(log).bars
    drawn = draw(log)

    assert ["attempt", "connection"] == list(bar.parts)
    assert Span(0.0, 0.75) == bar.parts["connection"]
    (light,) = re.findall(r'<rect class="connection"[^>]*>(?:<title>[^<]*)?', drawn)
    words = "attempt 1, 0.750 s in the pool&#x27;s queue, 0.000 s to 0.750 s"
    assert light.endswith(f"<title>{words}")
    assert drawn.index('class="success" x') < drawn.index('class="connection" x')
    assert 'class="connection"' not in draw(await answered(connect=0.01))


async def test_wait_of_a_call_inside_an_attempt_begins_with_it():
    """The bar of a call inside is on the axis of the call around."""
    ctx = begin()
    await asyncio.sleep(2.0)
    inside = begin(inside=ctx.log)
    await asyncio.sleep(1.0)
    connect(inside, queued=0.5)
    end(inside, 200)
    end(ctx, 200)
    (bar,) = timeline(ctx.log).bars

    assert Span(2.0, 2.5) == bar.inside[0].parts["connection"]
