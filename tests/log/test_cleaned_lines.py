"""Values of lines, of which any may be missing or wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy._log.saved_log import cleaned
from aioretry_smithy._text.mask import DEFAULT_MASK


def shown(**values):
    """Return what is known of a call without attempts."""
    found = cleaned(values)
    assert [] == found.pop("children")
    return found


NO_NUMBERS = [None, True, "1", -1, float("nan"), float("inf"), [], 10**400]


@pytest.mark.parametrize("value", [None, "", 7, True, [], {}, b"a"])
def test_what_is_no_text_is_left_out(value):
    """So is an empty one."""
    assert {} == shown(name=value, request_content_preview=value)


@given(st.text("aZ09_ .,:*+-\t"))
def test_harmless_texts_stay_as_they_are(text):
    """The mask would hide nothing in them."""
    assert (text or None) == shown(name=text).get("name")
    assert text == DEFAULT_MASK.text(text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("http://u:S3CR3T@h/?token=S3CR3T", "http://****@h/?token=****"),
        ("see\udcff", "see\\udcff"),
        ("\u00e9", "\u00e9"),
    ],
)
def test_texts_are_masked_and_can_be_encoded(text, masked):
    """Whoever wrote them."""
    assert {"name": masked} == shown(name=text)


@pytest.mark.parametrize(
    ("preview", "masked"),
    [
        (
            '{"token": "S3CR3T", "a": 1}',
            DEFAULT_MASK.content('{"token": "S3CR3T", "a": 1}'),
        ),
        ('{"token": ****, "a": 1}', '{"token": ****, "a": 1}'),
        ("****\udcff", "****\\udcff"),
    ],
)
def test_previews_are_masked_once(preview, masked):
    """What was masked may be no JSON any more, and a second look would hide it all."""
    found = shown(response_content_preview=preview)

    assert {"response_content_preview": masked} == found


@pytest.mark.parametrize("value", [*NO_NUMBERS, 1.5, 1 << 63])
def test_what_is_no_whole_number_is_left_out(value):
    """A point alone makes no difference."""
    assert {} == shown(request_length=value)
    assert {"request_length": 3} == shown(request_length=3.0)


@pytest.mark.parametrize("value", [*NO_NUMBERS, 1e9])
def test_what_is_no_time_is_left_out(value):
    """Nothing takes years."""
    assert {} == shown(delay=value)
    assert {"delay": 3.0} == shown(delay=3)


@pytest.mark.parametrize("value", [None, 0, 1, "true", []])
def test_what_is_no_flag_is_left_out(value):
    """Only true and false are."""
    assert {} == shown(sent=value)
    assert {"sent": False} == shown(sent=False)


@pytest.mark.parametrize("value", ["a: b", ["a", "b"]])
def test_what_are_no_headers_is_empty(value):
    """As where there are none."""
    assert {"request_headers": {}} == shown(request_headers=value)


def test_what_can_be_no_header_is_left_out():
    """Names are tokens, values are texts; secrets are hidden."""
    headers = {"A-b": "c", "Cookie": "d", "e f": "g", "": "h", "@i": "j", "k": 1}

    assert {"A-b": "c", "Cookie": "****"} == shown(request_headers=headers).pop(
        "request_headers"
    )


def test_what_is_no_log_is_left_out():
    """In lists of logs, and in place of one."""
    values = cleaned({"children": [{}, None, [], "a", {}], "calls": {"a": {}}})

    assert {"children": [{"attempt": 1}, {"attempt": 2}], "calls": []} == values
