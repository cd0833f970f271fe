"""Numbers in words, the same in all views."""

from __future__ import annotations

import pytest

from aioretry_smithy._report.answers import (
    TimePart,
    count,
    part,
    seconds,
    share,
    shares_in_words,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0 s"),
        (0.00042, "0.42 ms"),
        (0.0106, "10.6 ms"),
        (0.9999, "1,000 ms"),
        (1.0, "1.00 s"),
        (99.95, "100 s"),
        (3600.0, "1.00 h"),
    ],
)
def test_times(value, text):
    """In a unit that needs few digits."""
    assert text == seconds(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 %"),
        (0.00001, "< 0.01 %"),
        (0.05, "5.00 %"),
        (0.5, "50.00 %"),
        (0.95, "95.00 %"),
        (0.999999, "> 99.99 %"),
        (1, "100 %"),
    ],
)
def test_shares(value, text):
    """What is not all does not look like it."""
    assert text == share(value)


def test_counts():
    """Whole, unless lines were sampled."""
    assert ("1,000", "1,000", "33.3") == (count(1000), count(1000.0), count(33.333))


def part_of(kind, source=None, slowest_share=0.5):
    return TimePart(kind, source, 1.0, 0.5, 1.0, slowest_share)


def test_parts_of_the_time():
    """Each kind has a name, each wait its reason."""
    assert "answers" == part(part_of("answer"))
    assert "waiting for Retry-After" == part(part_of("wait", "retry_after"))
    assert "waiting (other)" == part(part_of("wait", "other"))


def test_what_slow_calls_spent():
    """The largest parts; what is next to nothing is left out."""
    parts = [part_of("answer", None, 0.99), part_of("dns", None, 0.01)]

    assert "99.00 % on answers" == shares_in_words(parts)
    assert "no time" == shares_in_words([])
