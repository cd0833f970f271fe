"""Ids that were seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy._report.known_ids import KnownIds

IDS = st.from_regex(r"\A([a-c]{1,2}-[0-9]{1,4}|.{0,3})\Z")


@given(st.sets(IDS), st.sets(IDS))
def test_it_is_a_set(seen, asked):
    """Of ids such as ours, and of any other texts."""
    known = KnownIds()
    for each in seen:
        known.add(each)

    assert {each for each in seen | asked if each in known} == seen


def test_numbers_of_a_process_share_memory():
    """A million calls take little."""
    known = KnownIds()
    for number in range(10_000):
        known.add(f"k3j9x0qa-{number}")

    assert 50 > len(known._pages)
    assert not known._others


def test_same_number_in_other_words():
    """A number with a zero before it is another id."""
    known = KnownIds()
    known.add("a-07")

    assert "a-7" not in known
