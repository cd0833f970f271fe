"""Trees of calls of every shape are whole in each view."""

from __future__ import annotations

import asyncio
import io
import json
from xml.etree import ElementTree as ET

import pytest
from calls import end, end_call, function, http
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy.testing import VirtualTimeLoop

NAMES = st.text(st.characters(), min_size=1, max_size=20)
SECONDS = st.sampled_from([0.0, 0.1, 3.0])
LEAF = st.tuples(NAMES, st.just([]))
CALLS = st.recursive(
    LEAF,
    # A call has attempts, each of which has so many seconds and calls inside.
    lambda inside: st.tuples(
        NAMES,
        st.lists(st.tuples(SECONDS, st.lists(inside, max_size=3)), max_size=3),
    ),
    max_leaves=12,
)
SVG = "{http://www.w3.org/2000/svg}"


async def made(call, inside=None):
    """Make a call of a function, or of HTTP where it has no attempts."""
    name, attempts = call
    if not attempts:
        ctx = http("http://example.com/", inside)
        end(ctx, 200)
        return ctx.log
    ctx = function(name, inside)
    for seconds, calls in attempts:
        attempt = ctx.derive(ctx.request)
        await asyncio.sleep(seconds)
        for each in calls:
            await made(each, attempt.log)
        end(attempt)
    end_call(ctx, attempt)
    return ctx.log


def lines_of(log):
    """Return how many lines a log and all that it has inside take."""
    return 1 + sum(map(lines_of, (*log.calls, *log.children)))


def check_tree(log):
    lines = log.render().splitlines()
    inside = [line for call in inside_of(log) for line in call.render().splitlines()]

    assert lines_of(log) == len(lines)
    assert all(any(line.endswith(part) for line in lines) for part in inside)


def inside_of(log):
    return [call for attempt in (log, *log.children) for call in attempt.calls]


def check_values(log):
    def count(values):
        parts = [*values.get("calls", ()), *values["children"]]
        return 1 + sum(map(count, parts))

    assert lines_of(log) == count(json.loads(json.dumps(log.to_dict())))


def check_picture(log, path):
    log.to_svg(path)
    root = ET.parse(path).getroot()
    height = float(root.get("height"))

    for each in root.iter(f"{SVG}rect"):
        x, y = float(each.get("x", 0)), float(each.get("y", 0))
        assert x >= 0
        assert x + float(each.get("width")) <= 900.2
        assert y + float(each.get("height")) <= height


def check_colours(log):
    console = pytest.importorskip("rich.console").Console
    screen = console(file=io.StringIO(), force_terminal=True, width=200, no_color=True)
    screen.print(log)
    drawn = screen.file.getvalue().splitlines()

    assert log.render().splitlines() == [
        line.replace("\x1b[2m", "").replace("\x1b[0m", "").rstrip(" █▒░")
        for line in drawn
    ]


@given(call=CALLS)
def test_every_call_is_in_every_view(tmp_path_factory, call):
    """However deep and wide a tree is, nothing of it is lost or out of its place."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        log = runner.run(made(call))
        check_tree(log)
        check_values(log)
        check_picture(log, tmp_path_factory.getbasetemp() / "call.svg")
        check_colours(log)
