"""Find the call in a line of a log file."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from .._text import encodable

if TYPE_CHECKING:
    from .answers import Line

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_BETWEEN: Final = re.compile(r"[\s,]*(?=\{)")


class Skipped(StrEnum):
    """The reasons for a line to be none of a call."""

    NO_JSON = "no_json"
    NO_CALL = "no_call"
    ATTEMPT = "attempt"
    """It is of an attempt: the logging client is inside the retrying client."""

    NOT_NESTED = "not_nested"
    """It is one of two lines, for the request or for the response."""

    SEVERAL = "several"
    """There are more of them, as in a list on one line."""

    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    UNDER_WAY = "under_way"
    """The call had no outcome yet."""


# With an argument, json.loads() makes a decoder for each call.
_DECODER: Final = json.JSONDecoder(parse_constant=lambda name: None)


def decode(line: bytes) -> Line | Skipped:
    """Return the values of the call in a line, or why there is none.

    What stands before the first brace is passed over. One level of what a container
    puts around a line is taken off. Lone surrogates, which no file can have, are
    escaped.

    >>> decode(b'INFO {"type": "call", "name": "GET", "duration": NaN}')
    {'type': 'call', 'name': 'GET', 'duration': None}
    >>> decode(b"GET /orders")
    <Skipped.NO_JSON: 'no_json'>
    """
    found = _found(line)
    if isinstance(found, Skipped) or not _SURROGATE.search(line):
        return found
    try:
        return {encodable(key): _encodable(value) for key, value in found.items()}
    except RecursionError:
        return Skipped.TOO_DEEP


def _encodable(value: object) -> object:
    """Return a value with lone surrogates escaped, in keys too."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [*map(_encodable, value)]
    if isinstance(value, dict):
        return {encodable(key): _encodable(item) for key, item in value.items()}
    return value


def _found(line: bytes) -> Line | Skipped:
    text = line.decode("utf-8", "replace")
    start = text.find("{")
    if start < 0:
        return Skipped.NO_JSON
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        return Skipped.TOO_DEEP
    except ValueError:
        return Skipped.NO_JSON
    found = _call_in(value)
    if found is Skipped.NO_CALL or not _is_one_at(text, end):
        return found
    return Skipped.SEVERAL


def _is_one_at(text: str, end: int) -> bool:
    """Say whether another line follows at once."""
    between = _BETWEEN.match(text, end)
    if between is None:
        return False
    value = _decoded(text[between.end() :])
    return isinstance(value, dict) and _call_in(value) is not Skipped.NO_CALL


def _call_in(value: Line) -> Line | Skipped:
    """Look at an object, then at those that it is put around of."""
    found = kind_of(value)
    if found is not Skipped.NO_CALL:
        return found
    for inside in map(_decoded, value.values()):
        if isinstance(inside, dict):
            found = kind_of(inside)
            if found is not Skipped.NO_CALL:
                return found
    return Skipped.NO_CALL


def _decoded(text: object) -> object:
    """Read a text that has an object in it; return everything else as it is."""
    start = text.find("{") if isinstance(text, str) else -1
    if not isinstance(text, str) or start < 0:
        return text
    try:
        value: object = _DECODER.raw_decode(text, start)[0]
    except (RecursionError, ValueError):
        return None
    return value


def kind_of(value: Line) -> Line | Skipped:
    """Return the values of a call as they are, or what they are instead."""
    kind = value.get("type")
    if kind is None and "request_started_at" in value and "name" in value:
        # What to_dict() returns says nothing of its kind.
        kind = "call" if value.get("attempt") is None else "attempt"
    if "name" in value or "request_started_at" in value or "duration" in value:
        if kind == "call":
            return value
        if kind == "attempt":
            return Skipped.ATTEMPT
        if kind in ("request", "response"):  # anything may stand there
            return Skipped.NOT_NESTED
    return Skipped.NO_CALL
