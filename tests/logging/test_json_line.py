"""Lines of JSON: what is said first, and what may be left out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from calls import begin, report
from chains import bad_argument, log_of, retrying, session

from aioretry_smithy import LogFormatter, RequestLog

COMPACT = LogFormatter.json(nested=True, omit_empty=True)
WHOLE = LogFormatter.json(nested=True)


def line_of(log: RequestLog, formatter: LogFormatter = COMPACT) -> dict[str, Any]:
    """Return the values of the one line of a call."""
    values = json.loads(f"{formatter.format_response(log)}")
    assert isinstance(values, dict)
    return values


def without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """Return what is to be left, by hand."""
    left = {}
    for key, whole in values.items():
        is_nested = key in {"calls", "children"}
        value = [without_empty(each) for each in whole] if is_nested else whole
        is_empty = value is None or value is False or value in ("", [], {})
        if not is_empty or key in {"is_success", "sent"}:
            left[key] = value
    return left


async def test_line_begins_with_its_type_and_version():
    """A reader need not look further to know what it is."""
    log = await log_of(session([503, 200], retrying()))

    assert WHOLE.format_response(log).startswith('{"type": "call", "v": 1, "id": ')
    (attempt, _) = log.children
    assert COMPACT.format_response(attempt).startswith('{"type":"attempt","v":1,"id":')


async def test_what_is_empty_is_left_out():
    """In the attempts too; the rest is the same."""
    log = await log_of(session([503, 200], retrying()), headers={"X-Empty": ""})

    assert without_empty(line_of(log, WHOLE)) == line_of(log)
    assert {"X-Empty": ""} == line_of(log)["request_headers"]


async def test_numbers_are_never_left_out():
    """0 seconds and 0 bytes were measured."""
    values = line_of(await log_of(session([200])))

    assert (0, 0.0) == (values["response_length"], values["duration"])


async def test_what_did_not_succeed_or_was_not_sent_says_so():
    """These two are kept when they are false."""
    values = line_of(begin().log)

    assert (False, False) == (values["sent"], values["is_success"])


async def test_calls_inside_are_as_short():
    """At every depth of the tree of a function."""
    log = await report()

    assert without_empty(line_of(log, WHOLE)) == line_of(log)
    assert "dropped_calls" in line_of(log)["children"][0]


async def test_line_without_what_is_empty_is_much_shorter():
    """And has no spaces between its parts."""
    log = await log_of(session([503, 503, 200], retrying()))

    lines = [f"{each.format_response(log)}" for each in (COMPACT, WHOLE)]
    assert len(lines[0]) < 0.5 * len(lines[1])
    assert '", "' not in lines[0]


async def test_two_lines_may_be_short_too():
    """The request's and the response's."""
    log, formatter = await log_of(session([200])), LogFormatter.json(omit_empty=True)
    request, response = formatter.format_request(log), formatter.format_response(log)

    assert '{"type":"request","v":1,"id":' == f"{request}"[:29]
    assert "request_headers" not in json.loads(f"{request}")
    assert json.loads(f"{response}")["is_success"] is True


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({}, ""),
        ({"omit_empty": True}, "omit_empty=True"),
        ({"nested": True}, "nested=True"),
        ({"nested": True, "omit_empty": True}, "nested=True, omit_empty=True"),
    ],
)
def test_formatter_shows_how_to_get_it(settings, shown):
    """Its text names the arguments that are not the usual ones."""
    assert f"LogFormatter.json({shown})" == repr(LogFormatter.json(**settings))


@pytest.mark.parametrize("name", ["nested", "omit_empty"])
def test_settings_are_true_or_false(name):
    """Nothing else passes for one of them."""
    with bad_argument(name, 1, "True or False"):
        LogFormatter.json(**{name: 1})
