"""Values of lines, which may be anything."""

from __future__ import annotations

import math

import pytest

from aioretry_smithy._log.saved_log import dictionaries
from aioretry_smithy._report.fields import number, text


@pytest.mark.parametrize("value", [0, 0.5, 17])
def test_numbers(value):
    """They are what they are."""
    assert value == number({"x": value}, "x")


@pytest.mark.parametrize("value", [None, "1", True, -1, math.nan, math.inf, 1e300, []])
def test_what_is_no_number(value):
    """It is missing, as no time or count is like that."""
    assert None is number({"x": value}, "x")


@pytest.mark.parametrize("value", [None, "", 1, [], {}])
def test_what_is_no_text(value):
    """It is missing."""
    assert None is text({"x": value}, "x")
    assert "a" == text({"x": "a"}, "x")


@pytest.mark.parametrize("value", [None, "a", {}, [], 1, [1, "a", None]])
def test_what_are_no_dictionaries(value):
    """There are none."""
    assert [] == dictionaries({"x": value}, "x")
    assert [{}] == dictionaries({"x": [1, {}]}, "x")
