"""Values of stories: without what differs each time, and compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from yarl import URL

LIMITS = (0.2, 0.4, 5.0, 10.0, 20.0, 30.0, 300.0)
"""The only limits of time in these tests: what is left of one counts as that one."""

TIMES = {"request_started_at", "request_duration", "duration", "total_duration"}
BLANK = {*TIMES, "server.port", "Sec-WebSocket-Key", "Sec-WebSocket-Accept"}
CHANGES_EACH_TIME = (
    (re.compile(r" *(?:,? (?:in|after) +)?\b\d{1,6}\.\d{3} ?s\b"), ""),
    # A line that was cut ends in the middle of a number.
    (re.compile(r"next trial in [\d.]+…?"), "next trial"),
    (re.compile(r"(update_interval=[\d.]+\), )[\d.]+"), r"\1seconds"),
    (re.compile(r"startTime=[^,}]+"), "startTime"),
    (re.compile(r"\b0x[0-9a-f]+"), "0x"),
    (re.compile(r"127\.0\.0\.1:\d+|'127\.0\.0\.1', \d+"), "SERVER"),
    (re.compile(r"port=\d+"), "port"),
    (re.compile(r"Sec-WebSocket-(?:Key|Accept)=[^],]+"), "Sec-WebSocket"),
    (re.compile(r"\b[0-9a-f]{32}\b(-[0-9a-f]{16})?"), "at random"),
    (re.compile(r"\b\d{1,6}\.\d{4,}"), "seconds"),
)


def settled(value: Any) -> Any:
    """Return a value without times, ports and addresses in memory."""
    if isinstance(value, bytes):
        return settled(value.decode("latin-1")).encode("latin-1")
    if isinstance(value, str | URL):
        return _settled_text(str(value))
    if isinstance(value, Mapping):
        return {
            settled(key): _blank(item) if key in BLANK else settled(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set):
        return [settled(item) for item in value]
    return value


@lru_cache(maxsize=4096)
def _settled_text(text: str) -> str:
    # Nearly all texts of a call are names and words, the same in every story.
    for pattern, replacement in CHANGES_EACH_TIME:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def _blank(value: object) -> str | None:
    return None if value is None else "some"


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Return where two stories differ; a diff of all they tell would take minutes."""
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(key, one.get(key), other.get(key)) for key in {**one, **other}]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = [(number, *pair) for number, pair in enumerate(zip_longest(one, other))]
    else:
        return [] if one == other else [f"{where}: {one!r:.200} / {other!r:.200}"]
    found = (differences(mine, yours, f"{where}/{key}") for key, mine, yours in pairs)
    return [line for lines in found for line in lines]


def limit(seconds: float | None) -> float | None:
    """Return the limit that these seconds are left of."""
    if seconds is None:
        return None
    return min((each for each in LIMITS if seconds < 1.01 * each), default=seconds)
