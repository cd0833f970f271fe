"""The timeline of a call as a picture."""

import asyncio
import itertools
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from calls import (
    REQUEST,
    attempted,
    begin,
    begin_body,
    drop_calls,
    end,
    end_body,
    end_call,
    function,
    growing,
    http,
    note_delay,
    report,
)
from foreign_views import SVG, bars, elements, texts

from aioretry_smithy import CircuitBreaker, FailFastError, new_response
from aioretry_smithy._log.timeline import OutcomeKind
from aioretry_smithy._log.timeline_svg import STYLE, _line, draw, width

SECRET = "S3CR3T"


"""Common names of colours, by their angle on the wheel."""


class BytesPath:
    """A path that is bytes, which is a file to the system and not to us."""

    def __fspath__(self):
        return b"call.svg"


async def three_attempts(**options):
    ctx = begin(**options)
    await attempted(ctx, 0.5, 503, delay=1.5)
    await attempted(ctx, 1.0, 500, delay=4.0)
    last = await attempted(ctx, 1.0)
    end_call(ctx, last)
    return ctx.log


async def test_bars_are_to_scale():
    """Eight seconds are 860 pixels, for attempts, waits and the deadline alike."""
    picture = draw(await three_attempts(timeout=8.0))

    assert [
        ("wait", 20 + 53.8, 161.2),
        ("failure", 20.0, 53.8),
        ("wait", 20 + 322.5, 430.0),
        ("failure", 20 + 215.0, 107.5),
        ("success", 20 + 752.5, 107.5),
    ] == [(kind, pytest.approx(x), pytest.approx(w)) for kind, x, w in bars(picture)]
    deadline = elements(picture, "path", "deadline")[0]
    assert deadline.get("d").startswith("M880.0 ")


async def test_a_page_may_have_the_rules():
    """Where many pictures stand on a page, the rules need not be in each of them."""
    log = await three_attempts()

    assert draw(log) == draw(log, rules="").replace("\n\n", f"\n{STYLE}\n", 1)


async def test_reader_of_the_screen_hears_the_tree():
    """Title and description stand for the picture where nobody sees it."""
    log = await three_attempts()
    picture = draw(log)
    root = ET.fromstring(picture)

    assert "img" == root.get("role")
    assert log.render().splitlines()[0] == root.find(f"{SVG}title").text
    assert log.render() == root.find(f"{SVG}desc").text


@pytest.mark.parametrize(
    ("seconds", "names"),
    [
        (0.0, ["0.0000 s", "0.0002 s", "0.0004 s", "0.0006 s", "0.0008 s", "0.0010 s"]),
        (0.9, [f"0.{n} s" for n in range(10)]),
        (0.3, [f"{n / 100:.2f} s" for n in range(0, 31, 5)]),
        (1.0, ["0.0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1.0 s"]),
        (8.0, [f"{n} s" for n in range(9)]),
        (30.0, [f"{n} s" for n in range(0, 31, 5)]),
        (7200.0, [f"{n} s" for n in range(0, 7201, 1000)]),
    ],
)
async def test_axis_has_round_seconds(seconds, names):
    """There are a few ticks, at figures that people count in."""
    ctx = begin()
    await attempted(ctx, seconds)
    ticks = [text for text in texts(draw(ctx.log), "muted") if text in names]

    assert names == ticks
    assert len(names) == len(elements(draw(ctx.log), "path", "grid"))


@pytest.mark.parametrize(
    ("limit", "name", "kind"),
    [
        (3.0, "deadline: 3 s", "ink"),
        (3.1, "deadline: 3.1 s →", "muted"),
        (300.0, "deadline: 300 s →", "muted"),
        (1234567.25, "deadline: 1234567.25 s →", "muted"),
    ],
)
async def test_distant_deadline_has_no_place_on_the_axis(limit, name, kind):
    """A call of a second would be a dot beside a deadline of five minutes."""
    ctx = begin(timeout=limit)
    await attempted(ctx, 1.0)
    picture = draw(ctx.log)

    assert name in texts(picture, kind)
    assert (kind == "ink") is bool(elements(picture, "path", "deadline"))


async def test_deadline_before_the_start_stays_in_the_picture():
    """A decorator may have moved it there."""
    ctx = begin(timeout=1.0)
    ctx.set_response_timeout(-5.0, "extend")
    await attempted(ctx, 1.0)
    path = elements(draw(ctx.log), "path", "deadline")[0]

    assert path.get("d").startswith("M20.0 ")


async def test_attempt_without_duration_is_seen():
    """Also at the right edge, a bar is two pixels wide at least."""
    ctx = begin()
    await attempted(ctx, 0.0, 503, delay=1.0)
    await attempted(ctx, 0.0)

    assert [("failure", 20.0, 2.0), ("success", 878.0, 2.0)] == bars(draw(ctx.log))[1:]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.001, False), (0.005, False), (0.02, True), (0.5, True)]
)
async def test_body_is_drawn_and_a_long_one_is_told(seconds, said):
    """The time between headers and end has a shade of its own."""
    ctx = begin()
    await asyncio.sleep(1.0)
    begin_body(ctx)
    await asyncio.sleep(seconds)
    end_body(ctx, 9)
    picture = draw(ctx.log)

    (body, _, length), (headers, *_) = bars(picture)
    assert ("success body", "success") == (body, headers)
    assert 860 * seconds / (1.0 + seconds) == pytest.approx(length, abs=0.06)
    assert said is (f"body {seconds:.3f} s" in texts(picture))


async def test_first_wait_has_a_row():
    """A wait before the first attempt is shown like any other wait."""
    ctx = begin()
    note_delay(ctx, 2.0, "rate_limit")
    await asyncio.sleep(2.0)
    await attempted(ctx, 2.0)
    picture = draw(ctx.log)

    assert "waited 2.000 s (rate_limit)" in texts(picture)
    assert ", first waited 2.000 s (rate_limit)" in picture
    assert [("wait", 20.0, 430.0), ("success", 450.0, 430.0)] == bars(picture)


async def test_tooltips_tell_what_the_words_leave_out():
    """A message that was cut is whole there."""
    ctx = begin()
    await attempted(ctx, 1.0, ValueError("x" * 300))
    tips = [rect.find(f"{SVG}title") for rect in elements(draw(ctx.log), "rect")]

    assert [f"attempt 1: ValueError: {'x' * 300}, 0.000 s to 1.000 s"] == [
        tip.text for tip in tips if tip is not None
    ]


async def test_tooltip_of_a_huge_message_is_bounded():
    """A server that fails with megabytes does not make a picture of megabytes."""
    ctx = begin()
    end(ctx.derive(REQUEST), ValueError("\0" * 1_000_000))
    picture = draw(ctx.log)
    tip = elements(picture, "rect", "error")[0].find(f"{SVG}title").text

    assert tip.startswith(r"attempt 1: ValueError: \x00\x00")
    assert tip.endswith("…, 0.000 s to 0.000 s")
    assert 2000 < len(tip) < 2050
    assert len(picture) < 10_000


async def test_nothing_lies_upon_anything_else():
    """Rows follow each other downwards, each text above its bar, all in the picture."""
    picture = draw(await three_attempts(timeout=8.0))
    height = float(ET.fromstring(picture).get("height"))
    words = [float(each.get("y")) for each in elements(picture, "text")]
    edges = [
        (float(each.get("y")), float(each.get("y")) + float(each.get("height")))
        for kind in ("failure", "success")
        for each in elements(picture, "rect", kind)
    ]

    assert 3 == len(edges)
    assert edges == sorted(edges)
    assert all(low < high for (_, low), (high, _) in itertools.pairwise(edges))
    assert all(12 <= y <= height - 4 for y in words)
    assert all(above + 16 <= y for above, y in itertools.pairwise(sorted({*words})))
    assert edges[-1][1] <= height
    for top, bottom in edges:
        assert all(y + 4 <= top or bottom <= y - 12 for y in words)
        assert [1.0] == [float(y == top - 6) for y in {*words} if top - 12 < y < top]


async def test_drawing_reads_the_attempts_once():
    """A thread that draws a call does not stumble over an attempt that begins."""
    ctx = begin()
    ctx.derive(REQUEST)
    picture = draw(growing(ctx))
    title, tree = (elements(picture, name)[0].text for name in ("title", "desc"))

    assert title.endswith(", 1 attempt")
    assert ["GET", "└─ "] == [each[:3] for each in tree.splitlines()]
    assert 1 == len(bars(picture))


async def test_texts_stay_in_the_picture():
    """However long the URL, the reason and the attempts are, all fits."""
    ctx = http(f"http://example.com/{'long/' * 100}", timeout=60.0)
    for reason in "R" * 400, "好" * 400, "R" * 10:
        child = ctx.derive(ctx.request)
        response = new_response(ctx.request, 503)
        response.reason = reason
        await asyncio.sleep(100.0)
        begin_body(child, response)
        note_delay(child, 1e6, "retry_after")
    picture = draw(ctx.log)

    for each in elements(picture, "text"):
        x, length = float(each.get("x")), float(each.get("textLength"))
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[each.get("text-anchor")]
        assert 0 <= x - share * length
        assert x - share * length + length <= 900
    assert any(text.endswith("R…") for text in texts(picture))
    assert any(text.endswith("好…") for text in texts(picture))


async def test_hostile_texts_are_escaped():
    """Nothing that a server sends becomes a part of the document."""
    ctx = http("http://example.com/?q=<&>]]>", timeout=1.0)
    child = ctx.derive(ctx.request)
    response = new_response(ctx.request, 503)
    response.reason = "<script>alert(1)</script>\x1b\x00\ud800\uffff&amp;]]>"
    begin_body(child, response)
    end_body(child, 0, ValueError("\"'<!-- \x08"))
    picture = draw(ctx.log)

    assert [] == elements(picture, "script")
    assert any("<script>alert(1)" in text for text in texts(picture, "failure"))


async def test_no_secret_is_in_the_picture():
    """URLs and messages are masked everywhere in the document."""
    ctx = http(f"http://user:{SECRET}@example.com/?token={SECRET}")
    child = ctx.derive(ctx.request)
    end(child, ValueError(f"http://user:{SECRET}@h/?key={SECRET}"))
    answered = ctx.derive(ctx.request)
    response = new_response(ctx.request, 503)
    response.reason = f"see http://user:{SECRET}@h/?key={SECRET}"
    begin_body(answered, response)
    end_call(ctx, answered)

    assert SECRET not in draw(ctx.log)


async def test_colours_suit_day_and_night():
    """Each class has a colour in both."""
    picture = draw(await three_attempts())
    light, dark = elements(picture, "style")[0].text.split("@media")

    for kind in "paper", "ink", "muted", "wait", "grid", "deadline", *OutcomeKind:
        rule = re.compile(rf"\.{kind}{{(fill|stroke):(#\w+)}}")
        assert rule.search(light)[2] != rule.search(dark)[2]
    assert ".body{fill-opacity:0.4}" in light


async def test_words_and_bar_have_the_colour_of_the_outcome():
    """Also the call that is its only attempt, and the line above it."""
    ctx = begin()
    end(ctx, FailFastError(CircuitBreaker(clock=float), 1.0))
    picture = draw(ctx.log)

    assert 2 == len(texts(picture, "refused"))
    assert ["refused"] == [kind for kind, *_ in bars(picture)]


@pytest.mark.parametrize("kind", [str, Path])
async def test_picture_is_a_file(kind, tmp_path):
    """It is written whole, in UTF-8, over what was there."""
    log = await three_attempts(timeout=60.0)
    path = tmp_path / "call.svg"
    path.write_text("x" * 100_000)

    assert log.to_svg(kind(path)) is None
    assert draw(log).encode() == path.read_bytes()
    assert path.read_bytes().decode().count("→") == 1


@pytest.mark.parametrize(
    "path", [None, 1, True, b"call.svg", BytesPath(), object(), ["x"]]
)
async def test_what_is_no_path_is_refused(path):
    """A file descriptor and bytes are none either."""
    with pytest.raises(ValueError, match=r"^path: .* \(expected: a path\)$"):
        begin().log.to_svg(path)


def test_line_cuts_its_longest_part():
    """A text that is short stays whole."""
    parts = [("1  ", "muted"), ("a" * 500, "ink"), (" b", "muted")]
    drawn = "".join(_line(parts, 10))

    assert f">{'a' * 113}…<" in drawn
    assert ">1<" in drawn
    assert ">b<" in drawn


def test_line_cuts_blanks_without_a_sign():
    """The blanks that align columns are no words: nothing is said to be missing."""
    short = f"{'a' * 20}{' ' * 100}"

    drawn = "".join(_line([(short, "ink"), ("b", "muted")], 10))

    assert f">{'a' * 20}<" in drawn
    assert "…" not in drawn
    assert f'textLength="{width("a" * 20):.1f}"' in drawn


def test_line_keeps_the_place_of_blanks():
    """Blanks that XML would swallow still move what is written after them."""
    drawn = "".join(_line([("  a ", "ink"), ("b", "ink")], 10))

    places = [float(x) for x in re.findall(r'<text class="ink" x="([\d.]+)"', drawn)]
    papers = [float(x) for x in re.findall(r'<rect class="paper" x="([\d.]+)"', drawn)]
    assert [20 + width("  "), 20 + width("  a ")] == pytest.approx(places, abs=0.06)
    assert papers == places


@pytest.mark.parametrize("character", "好Ａ")
def test_wide_characters_take_two_columns(character):
    """Both kinds of width in Unicode, or texts would be squeezed."""
    assert width("xx") == width(character)


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
