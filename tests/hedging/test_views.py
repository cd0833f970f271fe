"""Views of a log, and log lines, show hedges."""

from __future__ import annotations

import io
import logging
import re

import pytest
from chains import after, retrying, without_id
from races import hedging, race

from aioretry_smithy import LogFormatter, LoggingClient
from aioretry_smithy._log.timeline import OutcomeKind, Span, timeline
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


async def test_the_tree_in_colours_has_bars_that_overlap(log):
    """With rich, as far as it is there."""
    console = pytest.importorskip("rich.console").Console
    settings = {"force_terminal": True, "color_system": "standard", "width": 150}
    terminal = console(file=io.StringIO(), _environ={}, **settings)
    terminal.print(log)
    lines = terminal.file.getvalue().splitlines()

    assert "\x1b[90msuperseded" in lines[3]
    assert all("█" in line for line in lines[1:])


async def test_values_say_which_requests_were_hedges(log):
    """As JSON, for each log."""
    values = log.to_dict()
    flags = [(each["is_hedge"], each["superseded"]) for each in values["children"]]

    assert (False, False) == (values["is_hedge"], values["superseded"])
    assert [(False, False), (True, False), (False, True), (True, False)] == flags


async def test_lines_say_what_became_of_a_request(log):
    """In words, and as values."""
    text = LogFormatter.text()
    *_, first, hedge = log.children

    assert text.format_request(hedge).endswith(", currentAttempt=4, hedge=yes}")
    assert text.format_request(first).endswith(", currentAttempt=3}")
    assert (
        "Response: {duration=0.750s, totalDuration=0.750s, scheme=http, host=localhost,"
        " method=GET, path=/orders, superseded=yes}"
    ) == without_id(text.format_response(first))
    assert '"superseded": true' in LogFormatter.json().format_response(first)


async def test_to_be_given_up_is_no_failure(caplog):
    """Its lines have the level of a success."""
    levels = {"successful_response_log_level": logging.INFO}
    caplog.set_level(logging.INFO, "aioretry_smithy")
    await race(SLOW, LoggingClient.new_decorator(**levels), hedging(0.5))

    assert [logging.INFO, logging.INFO] == [each.levelno for each in caplog.records]
    assert "superseded=yes" in caplog.text


def test_to_be_given_up_is_an_outcome():
    """Beside success, failure and the rest."""
    assert "superseded" == OutcomeKind.SUPERSEDED
