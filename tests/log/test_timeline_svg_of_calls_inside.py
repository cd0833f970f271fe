"""Calls inside of an attempt, in the picture of a timeline."""

from __future__ import annotations

import asyncio

import pytest
from calls import attempted, drop_calls, end, end_call, function, http, report
from foreign_views import bars, elements, texts

from aioretry_smithy._log.timeline_svg import draw


async def test_calls_inside_an_attempt_are_below_it_in_a_frame():
    """Attempts and calls have a row each, and stand within the time around them."""
    ctx = function("fetch")
    attempt = ctx.derive(ctx.request)
    await asyncio.sleep(1.0)
    call = http("http://example.com/", attempt.log)
    for _ in range(2):
        inner = await attempted(call, 1.0)
    end_call(call, inner)
    end(attempt)
    end_call(ctx, attempt)
    drop_calls(attempt.log, 1)
    picture = draw(ctx.log)
    second = 860 / 3

    assert [
        ("success", 20.0, 3 * second),
        ("success", 20.0, 3 * second),
        ("success body", 20 + second, 2 * second),
        ("success", 20 + second, second),
        ("success", 20 + 2 * second, second),
    ] == [(kind, *map(_near, place)) for kind, *place in bars(picture)]
    frame, bar, *inside = [
        (int(each.get("y")), int(each.get("height")))
        for each in elements(picture, "rect")
        if each.get("class") != "paper"
    ]
    assert (68 + 20, 5 * 38 - 24) == frame
    assert (68 + 20, 10) == bar
    assert all(frame[0] < y < y + height < sum(frame) for y, height in inside)
    assert "GET http://example.com/" in texts(picture, "ink")
    assert "and 1 more call" in texts(picture, "muted")
    assert f'viewBox="0 0 900 {68 + 5 * 38 + 36}"' in picture


def _near(pixels):
    return pytest.approx(pixels, abs=0.06)


async def test_words_of_calls_inside_stand_further_in():
    """The depth of a call is where its words begin."""
    picture = draw(await report())
    begin = {
        each.text: float(each.get("x")) for each in elements(picture, "text", "ink")
    }

    assert 20.0 == begin["fetch_report"]
    assert 38.0 == begin["Store.load_rows"]
    assert 74.0 == begin["POST https://****@db.example.com/query"]


async def test_paper_below_words_leaves_a_frame_its_tint():
    """All paper comes before the first frame."""
    kinds = [each.get("class") for each in elements(draw(await report()), "rect")]
    papers = kinds.count("paper")

    assert {"paper"} == {*kinds[:papers]}
    assert len(kinds) > papers > 10


async def test_words_of_calls_inside_fit():
    """A URL that is too long for its line is cut there as well."""
    ctx = function("fetch")
    http(f"http://example.com/{'x' * 200}", ctx.log)
    picture = draw(ctx.log)
    ends = [
        float(each.get("x")) + float(each.get("textLength"))
        for each in elements(picture, "text")
        if each.get("text-anchor") == "start"
    ]

    assert 880 - 8 < max(ends) <= 880


async def test_call_inside_is_named_where_it_is_pointed_at():
    """The bar of a call says that it is one, those of its attempts which."""
    ctx = function("fetch")
    call = http("http://example.com/", ctx.log)
    end_call(call, await attempted(call, 1.0))
    end(http("http://example.com/", ctx.log), 404)
    titles = [each.text for each in elements(draw(ctx.log), "title")][2:]

    assert [
        "call with all its attempts, 0.000 s to 1.000 s",
        "attempt 1: 200 OK, 0.000 s to 1.000 s",
        "call: 404 Not Found, 1.000 s to 1.000 s",
    ] == titles
