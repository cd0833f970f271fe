"""Small pictures of what happened when."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from made_answers import moment

from aioretry_smithy._report.answers import CallsByTime

pytest.importorskip("jinja2", reason="needs the extra cli")

from aioretry_smithy._report.page import panels


def drawn(*moments, step=60):
    """Return the pictures as trees, by their titles."""
    roots = map(ET.fromstring, panels(CallsByTime(step, "", moments)))
    return {root.findtext("title"): root for root in roots}


def texts(picture):
    return [each.text for each in picture.iter("text")]


def heights(picture):
    """Return how high each column is, in pixels."""
    outline = [each.get("d") for each in picture.iter("path")][-1]
    return [round(102 - float(top), 1) for top in re.findall(r"V([\d.]+)H", outline)]


def test_there_is_a_picture_for_each_number():
    """Calls, failures, retries and the slow ones, each with the times of its ends."""
    pictures = drawn(*map(moment, range(60)))

    assert [
        *("calls", "calls without success"),
        *("retries, % of attempts", "p99, seconds"),
    ] == [*pictures]
    assert all({"12:00", "12:59"} <= {*texts(each)} for each in pictures.values())


def test_ends_on_different_days_say_which():
    """The hours alone would be those of any day."""
    pictures = drawn(moment(0), moment(36 * 60), step=3600)

    ends = {"11-26 12:00", "11-28 00:00"}
    assert all(ends <= {*texts(each)} for each in pictures.values())


def test_columns_are_to_scale():
    """The largest number takes all the height; a minute without calls has none."""
    moments = moment(0, calls=50), moment(1, calls=100), moment(3, calls=25)

    assert [36.0, 72.0, 0.0, 18.0] == heights(drawn(*moments)["calls"])


def test_zeros_have_a_scale():
    """Nothing happened is a line at zero."""
    quiet = moment(0, failures=0), moment(1, failures=0)
    picture = drawn(*quiet)["calls without success"]

    assert [0.0, 0.0] == heights(picture)
    assert ["0"] == [each for each in texts(picture) if each.isdigit()]


def test_counts_are_whole_numbers():
    """The scale of a few failures says 2 and not 2.0."""
    picture = drawn(moment(0, failures=2), moment(1))["calls without success"]

    assert {"0", "2"} <= {*texts(picture)}


def test_steps_may_be_longer_than_a_minute():
    """The columns go by the step."""
    moments = moment(0, calls=1), moment(10, calls=1)

    assert [72.0, 72.0] == heights(drawn(*moments, step=600)["calls"])


def test_one_moment_is_no_picture():
    """With nothing to compare there is none, nor without calls."""
    assert {} == drawn(moment(0))
    assert {} == drawn()


def test_p99_may_be_missing():
    """A minute whose calls have no duration shows none."""
    moments = moment(0, p99=None), moment(1, p99=0.25)

    assert [0.0, 72.0] == heights(drawn(*moments)["p99, seconds"])
