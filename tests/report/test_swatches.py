"""Each part of the time has a colour."""

from __future__ import annotations

import re

import pytest

from aioretry_smithy._report.answers import TimePart

pytest.importorskip("jinja2", reason="needs the extra cli")

from aioretry_smithy._report.page import SWATCH_STYLE, swatch


@pytest.mark.parametrize(
    ("expected", "part", "source"),
    [
        ("swatch-answer", "answer", None),
        ("swatch-backoff", "wait", "backoff"),
        ("swatch-wait", "wait", None),
        ("swatch-wait", "wait", 'x" onclick="alert(1)'),
    ],
)
def test_classes_are_names_of_ours(expected, part, source):
    """A reason that a line made up has the colour of waits."""
    assert expected == swatch(TimePart(part, source, 1.0, 0.1, 1.0, 0.1))


def test_each_class_has_a_colour_by_day_and_by_night():
    """Every variable is set twice, and every class is one of them."""
    colours = re.findall(r"--([\w-]+):#", SWATCH_STYLE)
    day, night = colours[: len(colours) // 2], colours[len(colours) // 2 :]
    used = re.findall(r"var\(--([\w-]+)\)", SWATCH_STYLE)

    assert day == night
    assert {*used} <= {*day}
