"""Values of stories: without what differs each time, and compared."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from yarl import URL

from aioretry_smithy.testing import VirtualTimeLoop

LIMITS = (0.2, 0.4, 5.0, 10.0, 20.0, 30.0, 300.0)
"""The only limits of time in these tests: what is left of one counts as that one."""

TIMES = {"request_started_at", "request_duration", "duration", "total_duration"}
BLANK = {*TIMES, "server.port", "Sec-WebSocket-Key", "Sec-WebSocket-Accept"}
TIMES_IN_TEXT = (
    (re.compile(r" *(?:,? (?:in|after) +)?\b\d{1,6}\.\d{3} ?s\b"), ""),
    # A line that was cut ends in the middle of a number.
    # What came after no time at all counts in milliseconds on some loops.
    (re.compile(r"(Limit[.\w]*\([^)]*\), )[\d.e-]+"), r"\1seconds"),
    (re.compile(r"next (trial )?in [\d.]+…?"), r"next \1"),
)
ID = r"[a-z2-7]{8}-\d+(?:\.\d+)?"
_NEXT = "cause superseded injected endpoint sent headers preview".replace(" ", "|")
NOT_RECORDED = (
    # What the request line says already.
    re.compile(
        r"(?m)^(Response: \{.*?)"
        r"(?:(?:scheme=[^,]*, )?(?:host=[^,]*, )?method=[^,]*, path=|name=).*?"
        rf"(?:, (?=(?:{_NEXT})=)|(?=\}}))"
    ),
    # Of an empty URL only the method is named.
    re.compile(r"(?m)^(Response: \{.*?)method=[^,{}]*, (?=cause=)"),
    re.compile(r"(?m)^(Response: \{[^}]*), (?=\})"),
)
CHANGES_EACH_TIME = (
    *((pattern, r"\1") for pattern in NOT_RECORDED),
    (re.compile(r"(update_interval=[\d.]+\), )[\d.]+"), r"\1seconds"),
    (re.compile(rf"(?<=\{{)id={ID}(?:, )?|, id={ID}|\"id\": \"{ID}\", "), ""),
    (re.compile(r"startTime=[^,}]+"), "startTime"),
    (re.compile(r"\b0x[0-9a-f]+"), "0x"),
    (re.compile(r"127\.0\.0\.1:\d+|'127\.0\.0\.1', \d+"), "SERVER"),
    (re.compile(r"port=\d+"), "port"),
    # The certificate of a server is made anew.
    (re.compile(r"(b'x{32}', )b(['\"]).*?\2, SERVER"), r"\1b'', SERVER"),
    (re.compile(r"_ssl\.c:\d+"), "_ssl.c"),
    (re.compile(r"Python/3\.\d+ aiohttp/[\w.]+"), "USER-AGENT"),
    (re.compile(r"\bgzip, deflate(, br)?(, zstd)?"), "ENCODINGS"),
    (re.compile(r"Sec-WebSocket-(?:Key|Accept)=[^],]+"), "Sec-WebSocket"),
    (re.compile(r"\b[0-9a-f]{32}\b(-[0-9a-f]{16}(-[0-9a-f]{2})?)?"), "at random"),
    (re.compile(r"\b\d{1,6}\.\d{4,}(e-\d+)?|\b\d+e-\d+"), "seconds"),
)


def settled(value: Any) -> Any:
    """Return a value without times, ports and addresses in memory.

    Times stay where they are virtual.
    """
    if isinstance(value, bytes):
        return settled(value.decode("latin-1")).encode("latin-1")
    if isinstance(value, str | URL):
        return _settled_text(str(value), is_time_virtual())
    if isinstance(value, Mapping):
        return {
            settled(key): _blank(item) if key in BLANK else settled(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set):
        return [settled(item) for item in value]
    return value


@lru_cache(maxsize=4096)
def _settled_text(text: str, keeps_times: bool) -> str:
    # Nearly all texts of a call are names and words, the same in every story.
    changing = CHANGES_EACH_TIME if keeps_times else TIMES_IN_TEXT + CHANGES_EACH_TIME
    for pattern, replacement in changing:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def _blank(value: object) -> object:
    if value is None or (isinstance(value, float) and is_time_virtual()):
        return rounded(value)
    return "some"


def is_time_virtual() -> bool:
    """Say whether the times of a story are the same each time it is told."""
    try:
        return isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    except RuntimeError:
        return False


def rounded(seconds: Any) -> Any:
    """Return seconds, or None, without the last digits of a sum."""
    return None if seconds is None else round(seconds, 6)


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Return where two stories differ; a diff of all they tell would take minutes."""
    if one == other:
        return []
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(key, one.get(key), other.get(key)) for key in {**one, **other}]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = [(number, *pair) for number, pair in enumerate(zip_longest(one, other))]
    else:
        return [f"{where}: {one!r:.200} / {other!r:.200}"]
    found = (differences(mine, yours, f"{where}/{key}") for key, mine, yours in pairs)
    return [line for lines in found for line in lines]


def limit(seconds: float | None) -> float | None:
    """Return the limit that these seconds are left of."""
    if seconds is None or is_time_virtual():
        return rounded(seconds)
    return min((each for each in LIMITS if seconds < 1.01 * each), default=seconds)
