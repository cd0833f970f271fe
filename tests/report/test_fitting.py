"""What is written is kept within a number of bytes."""

from __future__ import annotations

from aioretry_smithy._report.fitting import fitted


def test_bytes_count_and_not_characters():
    """A character outside ASCII takes more of the room."""
    assert (["ab"], 1) == fitted([["ab"], ["ü"]], 3)[:2]


def test_a_shorter_form_stands_in():
    """Where the best form has no room, the next one has."""
    assert (["short"], 0) == fitted([["too long", "short"]], 5)


def test_forms_that_are_not_needed_are_not_made():
    """A form that costs time is asked for only in need."""

    def forms():
        yield "fits"
        raise AssertionError("not needed")

    assert (["fits"], 0) == fitted([forms()], 4)


def test_what_has_no_room_is_not_written_for_ever():
    """After ten pieces without room, the rest is counted."""
    asked = []

    def forms(number):
        asked.append(number)
        yield "too long"

    pieces = (forms(number) for number in range(1000))

    assert ([], 1000) == fitted(pieces, 4)
    assert [*range(10)] == asked
