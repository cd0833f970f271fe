"""The tree and the pictures of a log show hedges."""

import re

import pytest
from chains import after, retrying
from races import hedging, race

from aioretry_smithy._log.timeline import Span, timeline
from aioretry_smithy._log.timeline_svg import draw

SLOW = [after(9.0, 200), after(0.25, 201)]


@pytest.fixture
async def log():
    """Of a call with two races: a bad one, and one that a hedge wins."""
    answers = [after(1.0, 503), after(0.7, 502), *SLOW]
    _, _, found = await race(answers, hedging(0.5), retrying(0.25))
    return found


async def test_the_tree_says_which_requests_were_hedges(log):
    """And after how long they were sent, beside the waits."""
    wait = "then waited 0.250 s (backoff)"
    assert [
        "GET http://localhost/orders  ->  201 Created  in 2.200 s, 4 attempts",
        "├─ 1  503 Service Unavailable   1.000 s",
        f"├─ 2  502 Bad Gateway           0.700 s   hedge after 0.500 s, {wait}",
        "├─ 3  superseded                0.750 s",
        "└─ 4  201 Created               0.250 s   hedge after 0.500 s",
    ] == log.render().splitlines()


async def test_bars_overlap(log):
    """The wait after a race ends where the next one begins, not at a hedge."""
    bars = timeline(log).bars
    attempts = [bar.parts["attempt"] for bar in bars]

    assert [
        Span(0.0, 1.0),
        Span(0.5, 1.2),
        pytest.approx(Span(1.45, 2.2)),
        pytest.approx(Span(1.95, 2.2)),
    ] == attempts
    assert [1] == [number for number, bar in enumerate(bars) if "wait" in bar.parts]
    assert pytest.approx(Span(1.2, 1.45)) == bars[1].parts["wait"]
    assert ["failure", "failure", "superseded", "success"] == [x.outcome for x in bars]


async def test_the_picture_has_a_bar_for_each_request(log):
    """The one that was given up in a colour of its own."""
    picture = draw(log)
    starts = re.findall(r'class="(\w+)" x="([\d.]+)"[^>]*height="10"', picture)

    assert ["failure", "failure", "superseded", "success"] == [x for x, _ in starts]
    places = [float(x) for _, x in starts]
    assert sorted(places) == places
    assert "attempt 3: CancelledError" not in picture
    assert "attempt 3: superseded" in picture
