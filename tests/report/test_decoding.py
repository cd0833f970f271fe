"""Finding the call in a line."""

from __future__ import annotations

import json

import pytest
from made_lines import call

from aioretry_smithy._report.sources import Skipped, decode

CALL = call()
TEXT = json.dumps(CALL)


@pytest.mark.parametrize(
    "line",
    [
        TEXT,
        f"2026-11-26 12:00:00,000 DEBUG aioretry_smithy {TEXT}",
        f"\ufeff{TEXT}\r",
        f"[1] {TEXT} and more",
        f'{{"pid": 5}} {{not json}} {TEXT}',
        f"{{ {{}} [{{1}}] {TEXT} and more",
        "{1} " * 7 + TEXT,
        json.dumps({"log": TEXT + "\n", "stream": "stdout", "time": "2026"}),
        json.dumps({"stream": "stdout", "log": f"INFO {TEXT}"}),
        json.dumps({"level": "INFO", "message": CALL}),
        f"2026-11-26T12:00:00Z stdout F {TEXT}",
        f'{TEXT} {{"trace": 1}}',
        f"{TEXT}, {{broken",
    ],
)
def test_a_call_is_found(line):
    """After a prefix, after other braces, and in what a container puts around it."""
    assert CALL == decode(line.encode())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("GET /orders 200", "no_json"),
        ("{" * 50, "no_json"),
        ("{1} " * 8 + TEXT, "no_json"),
        (json.dumps({**CALL, "calls": [CALL]})[:-30], "no_json"),
        (json.dumps({"calls": [CALL], "name": "cut here"})[:-3], "no_json"),
        ('{"a": 1' + "0" * 5000 + "}", "no_json"),
        ('{"a": {"b": 1}}', "no_call"),
        ('{"type": "call"}', "no_call"),
        ('{"type": "phone", "name": "Ada"}', "no_call"),
        ('{"log": "{\\"a\\": 1}", "more": "text {", "n": 1}', "no_call"),
        (json.dumps({**CALL, "type": "attempt"}), "attempt"),
        (json.dumps({**CALL, "type": None, "attempt": 2}), "attempt"),
        (json.dumps({**CALL, "type": []}), "no_call"),
        (json.dumps({**CALL, "type": "request"}), "not_nested"),
        (json.dumps({"type": "response", "duration": 1}), "not_nested"),
        (json.dumps({"log": json.dumps({**CALL, "type": "response"})}), "not_nested"),
        (TEXT + TEXT, "several"),
        (json.dumps([CALL, CALL]), "several"),
        (f"{TEXT}\r{TEXT}\r", "several"),
    ],
)
def test_no_call_is_found(line, reason):
    """The reason says what the line is instead."""
    assert reason == decode(line.encode())


def test_deep_nesting():
    """What Python cannot read is skipped."""
    line = b'{"type": "call", "name": ' + b"[" * 200_000

    assert decode(line) in {Skipped.TOO_DEEP, Skipped.NO_JSON}


def test_deep_nesting_in_a_wrapper():
    """The same inside of a text."""
    inside = '{"a": ' + "[" * 200_000

    assert Skipped.NO_CALL is decode(json.dumps({"log": inside}).encode())


def test_values_of_to_dict():
    """They have no type; a dictionary of a log is a call all the same."""
    values = {key: value for key, value in CALL.items() if key not in {"type", "v"}}

    assert values == decode(json.dumps(values).encode())


def test_numbers_that_are_none():
    """NaN and infinities are missing."""
    line = '{"type": "call", "name": "GET", "duration": NaN, "delay": -Infinity}'

    assert {"type": "call", "name": "GET", "duration": None, "delay": None} == (
        decode(line.encode())
    )


def test_bytes_that_are_no_text():
    """They are replaced."""
    line = TEXT.encode().replace(b"shop", b"\xff")

    assert "https://\ufffd.example.com/orders/17" == decode(line)["request_url"]
