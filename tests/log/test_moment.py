"""Reading dates and times back."""

from __future__ import annotations

import pytest

from aioretry_smithy._log.saved_log import moment_of, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-26T12:00:00", 1795694400.0),
        ("2026-11-26T12:00:00Z", 1795694400.0),
        ("2026-11-26T13:00:00.500000+01:00", 1795694400.5),
        ("0001-01-01T00:00:00+14:00", -62135647200.0),
    ],
)
def test_moment_has_a_zone(text, seconds):
    """It is UTC unless another one is named, wherever the reader is."""
    assert seconds == seconds_of(text)


@pytest.mark.parametrize("value", [None, 5, "", "noon", "2026-13-01T00:00:00", b"now"])
def test_what_is_no_moment(value):
    """A line from elsewhere may say anything."""
    assert (None, None) == (moment_of(value), seconds_of(value))
