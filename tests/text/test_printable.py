"""Text that goes out: UTF-8 carries it, and it says what came in."""

from __future__ import annotations

import pytest

from aioretry_smithy._text.printable import encodable


@pytest.mark.parametrize("text", ["", "a%b\\c", "Größe", "\x00\x7f", "😀", "\uffff"])
def test_text_that_utf8_carries_stays(text):
    """Control characters and unassigned code points too."""
    assert text == encodable(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\udcff", r"\udcff"),
        ("é\ud800a", r"é\ud800a"),
        ("\ud83d\ude00", r"\ud83d\ude00"),
    ],
)
def test_half_a_surrogate_pair_is_escaped(text, shown):
    """So are two halves that nobody put together."""
    assert shown == encodable(text)
