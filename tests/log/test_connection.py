"""The views of what a request waited for before it was on the wire."""

from __future__ import annotations

import asyncio
import re

import pytest
from calls import attempted, begin, call_of, connect, end, end_call

from aioretry_smithy import AttemptTimeoutError, ConnectionTimings, LogFormatter
from aioretry_smithy._failures.failure import note_wait_in_pool
from aioretry_smithy._log.request_log import note
from aioretry_smithy._log.timeline import Span, timeline
from aioretry_smithy._log.timeline_svg import draw


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
