"""Make an example of a line: known keys, of the right kind, credentials hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._masking.mask import DEFAULT_MASK
from .._text import encodable
from .values import dictionaries, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from .answers import Line

_LONGEST: Final = 4200
"""Causes are cut at 4 kB when they are written."""

_MOST_INSIDE: Final = 100
_LARGEST: Final = 1 << 50
"""Bytes of a body; there are larger ones than numbers of anything else."""

_TEXTS: Final = (
    "id name request_method request_url request_content_preview request_started_at"
    " endpoint response_reason response_cause response_cause_type"
    " response_content_preview delay_source stop_reason retry_error sent_method"
    " sent_url"
).split()
_NUMBERS: Final = (
    "request_duration response_timeout duration total_duration delay"
).split()
_LENGTHS: Final = "request_length response_length".split()
_INTEGERS: Final = "response_status attempt total_attempts dropped_calls".split()
_FLAGS: Final = (
    "sent injected is_complete is_success is_hedge superseded no_retries"
).split()
_HEADERS: Final = "request_headers response_headers".split()


def cleaned(values: Line, attempt: int | None = None) -> Line:
    """Return what is known of a call, or of an attempt, to be shown.

    >>> cleaned({"name": "GET", "duration": "soon", "kind": 1})
    {'name': 'GET', 'children': []}
    """
    line: Line = {}
    for key, read in _READERS.items():
        value = read(values, key)
        if value is not None:
            line[key] = value
    if attempt is not None:
        line.setdefault("attempt", attempt)
    return line | _inside(values, attempt)


def _text(values: Line, key: str) -> str | None:
    value = values.get(key)
    if not isinstance(value, str):
        return None
    return DEFAULT_MASK.text(encodable(value[:_LONGEST]))


def _integer(values: Line, key: str) -> int | None:
    value = number(values, key)
    return None if value is None else int(value)


def _length(values: Line, key: str) -> int | None:
    value = values.get(key)
    return value if type(value) is int and 0 <= value < _LARGEST else None


def _flag(values: Line, key: str) -> bool | None:
    value = values.get(key)
    return value if isinstance(value, bool) else None


def _headers(values: Line, key: str) -> dict[str, str] | None:
    headers = values.get(key)
    if not isinstance(headers, dict):
        return None
    texts = {
        encodable(str(name)[:_LONGEST]): encodable(value[:_LONGEST])
        for name, value in headers.items()
        if isinstance(value, str)
    }
    return DEFAULT_MASK.headers(texts)


def _connection(values: Line, key: str) -> Line | None:
    connection = values.get(key)
    if not isinstance(connection, dict):
        return None
    times: Line = {key: number(connection, key) for key in ("queued", "dns", "connect")}
    return times | {"reused": _flag(connection, "reused")}


_READERS: Final[dict[str, Callable[[Line, str], object]]] = {
    key: read
    for keys, read in (
        (_TEXTS, _text),
        (_NUMBERS, number),
        (_LENGTHS, _length),
        (_INTEGERS, _integer),
        (_FLAGS, _flag),
        (_HEADERS, _headers),
        (("connection",), _connection),
    )
    for key in keys
}
"""The function that reads each key; None is left out."""


def _inside(values: Line, attempt: int | None) -> Line:
    """Return what is nested, of which an attempt has no attempts."""
    inside: Line = {}
    if attempt is None:
        children = dictionaries(values, "children")[:_MOST_INSIDE]
        inside["children"] = [cleaned(child, n) for n, child in enumerate(children, 1)]
    if "calls" in values:
        calls = dictionaries(values, "calls")[:_MOST_INSIDE]
        inside["calls"] = [cleaned(call) for call in calls]
    return inside
