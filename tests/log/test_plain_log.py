"""Values of lines, of which any may be missing or wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy._log.saved_log import PlainLog
from aioretry_smithy._text.mask import DEFAULT_MASK

NO_NUMBERS = [None, True, "1", -1, float("nan"), float("inf"), [], 10**400]


@pytest.mark.parametrize("value", [None, "", 7, True, [], {}, b"a"])
def test_what_is_no_text_is_none(value):
    """Neither is an empty one."""
    log = PlainLog({"name": value})

    assert log.text("name") is log.preview("name") is PlainLog({}).text("name") is None


@given(st.text("aZ09_ .,:*+-\t"))
def test_harmless_texts_stay_as_they_are(text):
    """The mask would hide nothing in them."""
    assert (text or None) == PlainLog({"name": text}).text("name")
    assert text == DEFAULT_MASK.text(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://u:S3CR3T@h/?token=S3CR3T", "http://****@h/?token=****"),
        ("see\udcff", "see\\udcff"),
        ("\u00e9", "\u00e9"),
    ],
)
def test_texts_are_masked_and_can_be_encoded(text, shown):
    """Whoever wrote them."""
    assert shown == PlainLog({"name": text}).text("name")


@pytest.mark.parametrize(
    ("preview", "shown"),
    [
        (
            '{"token": "S3CR3T", "a": 1}',
            DEFAULT_MASK.content('{"token": "S3CR3T", "a": 1}'),
        ),
        ('{"token": ****, "a": 1}', '{"token": ****, "a": 1}'),
        ("****\udcff", "****\\udcff"),
    ],
)
def test_previews_are_masked_once(preview, shown):
    """What was masked may be no JSON any more, and a second look would hide it all."""
    assert shown == PlainLog({"body": preview}).preview("body")


@pytest.mark.parametrize("value", [*NO_NUMBERS, 1.5, 1 << 63])
def test_what_is_no_whole_number_is_none(value):
    """A point alone makes no difference."""
    assert PlainLog({"length": value}).number("length") is None
    assert 3 == PlainLog({"length": 3.0}).number("length")


@pytest.mark.parametrize("value", [*NO_NUMBERS, 1e9])
def test_what_is_no_time_is_none(value):
    """Nothing takes years."""
    assert PlainLog({"delay": value}).seconds("delay") is None
    assert 3.0 == PlainLog({"delay": 3}).seconds("delay")


@pytest.mark.parametrize("value", [None, 0, 1, "true", []])
def test_what_is_no_flag_is_none(value):
    """Only true and false are."""
    assert PlainLog({"sent": value}).flag("sent") is None
    assert PlainLog({"sent": False}).flag("sent") is False


@pytest.mark.parametrize("value", [None, "a: b", ["a", "b"]])
def test_what_are_no_headers_is_empty(value):
    """As where there are none."""
    assert {} == PlainLog({"headers": value}).headers("headers")


def test_what_can_be_no_header_is_left_out():
    """Names are tokens, values are texts; secrets are hidden."""
    headers = {"A-b": "c", "Cookie": "d", "e f": "g", "": "h", "@i": "j", "k": 1}

    assert {"A-b": "c", "Cookie": "****"} == PlainLog({"h": headers}).headers("h")


def test_what_is_no_log_is_left_out():
    """In lists of logs, and in place of one."""
    log = PlainLog({"children": [{}, None, [], "a", {}], "calls": {"a": {}}})

    assert (2, 0) == (len(log.attempts), len(log.calls))


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, None),
        ({"response_cause": "ValueError: a: b"}, "ValueError"),
        ({"response_cause": "ValueError"}, "ValueError"),
        ({"response_cause": "a", "response_cause_type": "ValueError"}, "ValueError"),
    ],
)
def test_class_of_a_cause(values, name):
    """Old lines have it only before the message."""
    assert name == PlainLog(values).cause_type


def test_http_calls_inside_functions():
    """In order: those of the call before those of its attempts, at any depth."""
    leaf = [{"request_url": f"/{number}"} for number in range(5)]
    tree = {
        "calls": [leaf[0], {"calls": [leaf[1]]}],
        "children": [{"calls": [leaf[2], leaf[3]]}, {"calls": [leaf[4]]}],
    }

    assert ["/0", "/1", "/2", "/3", "/4"] == [
        call.text("request_url") for call in PlainLog(tree).http_calls()
    ]
