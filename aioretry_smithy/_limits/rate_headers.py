"""Read from the headers of an answer how long a server will refuse requests."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from .._clock import wall_clock
from .._failures.hints import retry_after, timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from multidict import MultiMapping

_THROTTLING = {403, 429}
"""The statuses whose ``Retry-After`` is that of a rate; GitHub answers with a 403."""

_UNIX_TIME = 1e9
"""Seconds above which a reset is a time, and not a delay."""

_KINDS = "", "-Requests", "-Tokens"
"""What the names of headers end with, by what is limited."""

_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_AMOUNT = r"\d{1,9}(?:\.\d{1,9})?"
# As Go writes durations: 6m0s, 120ms, 1h2.5s.
_PART = re.compile(rf"({_AMOUNT})(ms|us|[dhms])", re.ASCII)
_DURATION = re.compile(rf"(?:{_AMOUNT}(?:ms|us|[dhms]))+", re.ASCII)

_DATE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)",
    re.ASCII | re.IGNORECASE,
)

_NUMBER = re.compile(r"-?\d{1,12}(\.\d{1,9})?", re.ASCII)

# RFC 9651: items, each with parameters; a string may have commas in it.
_ITEM = re.compile(
    r"""[ \t]*("(?:[^"\\]|\\.)*"|[^",;\s]+)   # the name of a policy
    ((?:[ \t]*;[ \t]*[a-z*][a-z0-9_.*-]*(?:=(?:"(?:[^"\\]|\\.)*"|[^",;\s]*))?)*)
    [ \t]*(?:,|$)""",
    re.ASCII | re.VERBOSE,
)
_PARAMETER = re.compile(r";[ \t]*([a-z*][a-z0-9_.*-]*)=([^\";\s]+)", re.ASCII)


def seconds_to_reset(status: int, headers: MultiMapping[str]) -> float | None:
    """Return for how many seconds nothing is left; None where something is, or may be.

    >>> from multidict import CIMultiDict
    >>> seconds_to_reset(200, CIMultiDict({"RateLimit": '"default";r=0;t=7'}))
    7.0
    """
    if status in _THROTTLING:
        seconds = retry_after(headers)
        if seconds is not None:
            return seconds
    return max((*_of_draft(headers), *_of_custom(headers)), default=None)


def _of_draft(headers: MultiMapping[str]) -> Iterator[float]:
    """Yield the resets of policies with nothing left."""
    windows = _policies(_whole(headers, "RateLimit-Policy"))
    for name, parameters in _policies(_whole(headers, "RateLimit")).items():
        remaining = _number(parameters.get("r"))
        # Where the reset is left out, it is at the end of the window.
        window = windows.get(name, {}).get("w")
        reset = _number(parameters.get("t", window))
        if remaining is not None and remaining <= 0 and reset is not None:
            yield max(0.0, reset)


def _of_custom(headers: MultiMapping[str]) -> Iterator[float]:
    """Yield the resets of what has nothing left: requests, tokens, or both in one."""
    for kind in _KINDS:
        remaining = _number(headers.get(f"X-RateLimit-Remaining{kind}"))
        if remaining is not None and remaining <= 0:
            reset = _reset(headers.get(f"X-RateLimit-Reset{kind}", "").strip(), headers)
            if reset is not None:
                yield max(0.0, reset)


def _reset(text: str, headers: MultiMapping[str]) -> float | None:
    """Return in how many seconds a reset is, in whichever form; None of no form."""
    seconds = _number(text)
    if seconds is not None and seconds <= _UNIX_TIME:
        return seconds
    if _DURATION.fullmatch(text):
        return sum(float(many) * _UNITS[unit] for many, unit in _PART.findall(text))
    now = wall_clock()
    then = _moment(text, now) if seconds is None else seconds
    if then is None:
        return None
    sent_at = timestamp(headers.get("Date", ""), now)
    return then - (now if sent_at is None else sent_at)


def _moment(text: str, now: float) -> float | None:
    """Return the Unix time of a date: one of HTTP, or one of RFC 3339."""
    if not _DATE.fullmatch(text):
        return timestamp(text, now)
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except ValueError:
        return None


def _whole(headers: MultiMapping[str], name: str) -> str:
    """Return a list whose members may be in several headers."""
    return ", ".join(headers.getall(name, ()))


def _policies(value: str) -> dict[str, Mapping[str, str]]:
    """Return the parameters of each policy; nothing where the value is not a list."""
    found: dict[str, Mapping[str, str]] = {}
    at = 0
    while at < len(value):
        item = _ITEM.match(value, at)
        if item is None:
            return {}
        found[item[1]] = dict(_PARAMETER.findall(item[2]))
        at = item.end()
    return found


def _number(text: str | None) -> float | None:
    return float(text) if text and _NUMBER.fullmatch(text.strip()) else None
