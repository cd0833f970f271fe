"""The timeline of a call as a picture."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from aioretry_smithy import ClientRequestContext, HttpRequest, new_response
from aioretry_smithy._svg import Words, line, width
from aioretry_smithy._timeline_svg import draw

SVG = "{http://www.w3.org/2000/svg}"
REQUEST = HttpRequest("GET", "http://example.com/")
SECRET = "S3CR3T"


def call(url="http://example.com/", **options):
    return ClientRequestContext(HttpRequest("GET", url), **options)


async def attempt(ctx, seconds, status=200, *, delay=None, **options):
    child = ctx.derive(ctx.request, **options)
    await asyncio.sleep(seconds)
    child.log.record_response(new_response(ctx.request, status))
    child.log.end_body(0)
    if delay is not None:
        child.log.delay, child.log.delay_source = delay, "backoff"
        await asyncio.sleep(delay)
    return child


async def three_attempts(**options):
    ctx = call(**options)
    await attempt(ctx, 0.5, 503, delay=1.5)
    await attempt(ctx, 1.0, 500, delay=4.0)
    last = await attempt(ctx, 1.0)
    ctx.log.record_answer(last.log)
    return ctx.log


def elements(picture, name, kind=None):
    found = ET.fromstring(picture).iter(f"{SVG}{name}")
    return [each for each in found if kind in {None, each.get("class")}]


def texts(picture, kind=None):
    return [each.text for each in elements(picture, "text", kind)]


def bars(picture):
    """Return class, start and length of each bar, in pixels."""
    return [
        (each.get("class"), float(each.get("x")), float(each.get("width")))
        for each in elements(picture, "rect")
        if each.get("class") != "paper"
    ]


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


async def test_words_are_those_of_the_tree():
    """The picture says what the tree says."""
    picture = draw(await three_attempts())

    assert {
        "GET http://example.com/",
        "200 OK",
        "in 8.000 s, 3 attempts",
        "503 Service Unavailable",
        "then waited 1.500 s (backoff)",
    } <= {*texts(picture)}


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
        (1.0, ["0.0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1.0 s"]),
        (8.0, [f"{n} s" for n in range(9)]),
        (30.0, [f"{n} s" for n in range(0, 31, 5)]),
        (7200.0, [f"{n} s" for n in range(0, 7201, 1000)]),
    ],
)
async def test_axis_has_round_seconds(seconds, names):
    """There are a few ticks, at figures that people count in."""
    ctx = call()
    await attempt(ctx, seconds)
    ticks = [text for text in texts(draw(ctx.log), "muted") if text in names]

    assert names == ticks
    assert len(names) == len(elements(draw(ctx.log), "path", "grid"))


@pytest.mark.parametrize(
    ("limit", "name", "kind"),
    [
        (3.0, "deadline: 3 s", "ink"),
        (3.1, "deadline: 3.1 s →", "muted"),
        (300.0, "deadline: 300 s →", "muted"),
    ],
)
async def test_distant_deadline_has_no_place_on_the_axis(limit, name, kind):
    """A call of a second would be a dot beside a deadline of five minutes."""
    ctx = call(timeout=limit)
    await attempt(ctx, 1.0)
    picture = draw(ctx.log)

    assert name in texts(picture, kind)
    assert (kind == "ink") is bool(elements(picture, "path", "deadline"))


async def test_no_deadline_no_line():
    """Nothing is said of what there is not."""
    picture = draw(await three_attempts())

    assert "deadline:" not in picture
    assert [] == elements(picture, "path", "deadline")


async def test_deadline_before_the_start_stays_in_the_picture():
    """A decorator may have moved it there."""
    ctx = call(timeout=1.0)
    ctx.set_response_timeout(-5.0, "extend")
    await attempt(ctx, 1.0)
    path = elements(draw(ctx.log), "path", "deadline")[0]

    assert path.get("d").startswith("M20.0 ")


async def test_attempt_without_duration_is_seen():
    """Also at the right edge, a bar is two pixels wide at least."""
    ctx = call()
    await attempt(ctx, 0.0, 503, delay=1.0)
    await attempt(ctx, 0.0)

    assert [("failure", 20.0, 2.0), ("success", 878.0, 2.0)] == bars(draw(ctx.log))[1:]


@pytest.mark.parametrize(("seconds", "said"), [(0.005, False), (0.5, True)])
async def test_body_is_drawn_and_a_long_one_is_told(seconds, said):
    """The time between headers and end has a shade of its own."""
    ctx = call()
    await asyncio.sleep(1.0)
    ctx.log.record_response(new_response(REQUEST))
    await asyncio.sleep(seconds)
    ctx.log.end_body(9)
    picture = draw(ctx.log)

    assert ["success body", "success"] == [kind for kind, *_ in bars(picture)]
    assert said is (f"body {seconds:.3f} s" in texts(picture))


async def test_first_wait_has_a_row():
    """What was waited before the first attempt is told like any other wait."""
    ctx = call()
    ctx.log.delay, ctx.log.delay_source = 2.0, "rate_limit"
    await asyncio.sleep(2.0)
    await attempt(ctx, 2.0)
    picture = draw(ctx.log)

    assert "waited 2.000 s (rate_limit)" in texts(picture)
    assert [("wait", 20.0, 430.0), ("success", 450.0, 430.0)] == bars(picture)


async def test_tooltips_tell_what_the_words_leave_out():
    """A message that was cut is whole there."""
    ctx = call()
    child = ctx.derive(REQUEST)
    await asyncio.sleep(1.0)
    child.log.record_failure(ValueError("x" * 300))
    tips = [rect.find(f"{SVG}title") for rect in elements(draw(ctx.log), "rect")]

    assert [f"attempt 1: ValueError: {'x' * 300}, 0.000 s to 1.000 s"] == [
        tip.text for tip in tips if tip is not None
    ]


async def test_texts_stay_in_the_picture():
    """However long the URL, the reason and the attempts are, all fits."""
    ctx = call(f"http://example.com/{'long/' * 100}", timeout=60.0)
    for reason in "R" * 400, "好" * 400, "R" * 10:
        child = ctx.derive(ctx.request)
        response = new_response(ctx.request, 503)
        response.reason = reason
        await asyncio.sleep(100.0)
        child.log.record_response(response)
        child.log.delay, child.log.delay_source = 1e6, "retry_after"
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
    ctx = call("http://example.com/?q=<&>]]>", timeout=1.0)
    child = ctx.derive(ctx.request)
    response = new_response(ctx.request, 503)
    response.reason = "<script>alert(1)</script>\x1b\x00\ud800\uffff&amp;]]>"
    child.log.record_response(response)
    child.log.end_body(0, ValueError("\"'<!-- \x08"))
    picture = draw(ctx.log)

    assert [] == elements(picture, "script")
    assert any("<script>alert(1)" in text for text in texts(picture, "failure"))


async def test_no_secret_is_in_the_picture():
    """URLs and messages are masked everywhere in the document."""
    ctx = call(f"http://user:{SECRET}@example.com/?token={SECRET}")
    child = ctx.derive(ctx.request)
    child.log.record_failure(ValueError(f"http://user:{SECRET}@h/?key={SECRET}"))
    ctx.log.record_answer(child.log)

    assert SECRET not in draw(ctx.log)


async def test_colours_suit_day_and_night():
    """Each class has a colour in both."""
    picture = draw(await three_attempts())
    light, dark = elements(picture, "style")[0].text.split("@media")

    for kind in "paper", "ink", "success", "failure", "wait", "running", "deadline":
        assert f".{kind}{{" in light
        assert f".{kind}{{" in dark


@pytest.mark.parametrize("kind", [str, Path])
async def test_picture_is_a_file(kind, tmp_path):
    """It is written whole, in UTF-8, over what was there."""
    log = await three_attempts(timeout=60.0)
    path = tmp_path / "call.svg"
    path.write_text("x" * 100_000)

    assert log.to_svg(kind(path)) is None
    assert draw(log).encode() == path.read_bytes()
    assert path.read_bytes().decode().count("→") == 1


@pytest.mark.parametrize("path", [None, 1, True, b"call.svg", object(), ["x"]])
async def test_what_is_no_path_is_refused(path):
    """A file descriptor and bytes are none either."""
    with pytest.raises(ValueError, match=r"^path: .* \(expected: a path\)$"):
        call().log.to_svg(path)


async def test_file_that_cannot_be_written_is_an_os_error(tmp_path):
    """The system knows best what is wrong with a path."""
    with pytest.raises(FileNotFoundError):
        call().log.to_svg(tmp_path / "missing" / "call.svg")
    with pytest.raises(IsADirectoryError if os.name == "posix" else PermissionError):
        call().log.to_svg(tmp_path)


def test_line_cuts_its_longest_part():
    """What is short stays whole."""
    parts = [Words("1  ", "muted"), Words("a" * 50, "ink"), Words(" b", "muted")]
    drawn = "".join(line(parts, 0.0, 10, width("x" * 20) + 1))

    assert f">{'a' * 14}…<" in drawn
    assert ">1<" in drawn
    assert ">b<" in drawn
