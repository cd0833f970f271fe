"""Numbers in words, the same in all views."""

from __future__ import annotations

from aioretry_smithy._report.answers import TimePart, part, shares_in_words


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
