"""Lay out a call, read back from its plain values, as slices of a trace."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .plain_log import PlainLog

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LAST_YEAR: Final = 2250
"""Soon after it, 64 bits are not enough for nanoseconds."""

_CONNECTION: Final = "queued", "dns", "connect"
_BEFORE_HOST: Final = re.compile(r"(?:[^/?#:]*:)?//(?:[^/?#]*@)?")

_TEXTS: Final = (
    "id request_url endpoint response_reason response_cause delay_source stop_reason"
    " retry_error"
).split()
_NUMBERS: Final = (
    "response_status attempt total_attempts request_length response_length"
).split()
_SECONDS: Final = "delay response_timeout".split()
_FLAGS: Final = "is_success sent injected is_hedge superseded no_retries".split()


class Kind(StrEnum):
    """The kind of a slice: the category of its event."""

    CALL = "call"
    ATTEMPT = "attempt"

    HEDGE = "hedge"
    """An attempt that was sent beside another one."""

    WAIT = "wait"

    PART = "part"
    """A part of an attempt: getting a connection, or reading the body."""


@dataclass(slots=True)
class Slice:
    """A time with a name, in microseconds since 1970, and the times inside it."""

    kind: Kind
    name: str
    start: int
    end: int
    facts: dict[str, object] = field(default_factory=dict)
    inside: list[Slice] = field(default_factory=list)


def slice_of(call: PlainLog) -> Slice | None:
    """Lay out a call with all that is inside; None if nobody knows when it began.

    Attempts of which nobody knows it are left out. The call is as long as its waits and
    those attempts that are no hedges, at least.
    """
    found = [
        (log, _attempt(log, number)) for number, log in enumerate(call.attempts, 1)
    ]
    attempts = [(log, attempt) for log, attempt in found if attempt is not None]
    start = _start(call)
    if start is None and attempts:
        start = min(attempt.start for _, attempt in attempts)
    if start is None:
        return None
    whole = Slice(Kind.CALL, _name(call), start, start, _facts(call))
    if not attempts:
        # The line may be that of an attempt, whose wait comes after it.
        is_whole = call.number("attempt") is None
        _fill(whole, call, _microseconds(call, "delay") if is_whole else 0)
        return whole
    _, whole.end = _ends(call, start)
    own = [*(attempt for _, attempt in attempts), *_waits(call, start, attempts)]
    whole.inside = [*own, *_calls(call)]
    for part in own:
        if part.kind is not Kind.HEDGE:
            whole.start = min(whole.start, part.start)
            whole.end = max(whole.end, part.end)
    return whole


def _attempt(log: PlainLog, number: int) -> Slice | None:
    start = _start(log)
    if start is None:
        return None
    kind = Kind.HEDGE if log.flag("is_hedge") else Kind.ATTEMPT
    name = f"{kind} {log.number('attempt') or number}: {_outcome(log)}"
    attempt = Slice(kind, name, start, start, _facts(log))
    _fill(attempt, log)
    return attempt


def _fill(slice_: Slice, log: PlainLog, waited: int = 0) -> None:
    """Give the slice of one request, or of one call of a function, its end and parts.

    When it got its connection is not known, only how long that took: it is drawn at
    the beginning, but for what was *waited* before.
    """
    moment = slice_.start
    answered, slice_.end = _ends(log, moment)
    times = [(key, _microseconds(log.part("connection"), key)) for key in _CONNECTION]
    for name, taken in [(_wait_name(log), waited), *times]:
        end = min(moment + taken, answered)
        kind = Kind.PART if name in _CONNECTION else Kind.WAIT
        slice_.inside += _unless_empty(Slice(kind, name, moment, end))
        moment = end
    slice_.inside += _unless_empty(Slice(Kind.PART, "body", answered, slice_.end))
    calls = _calls(log)
    slice_.inside += calls
    if log.seconds("duration") is None:
        # It is under way, for as long as what it does.
        slice_.end = max([slice_.end, *(call.end for call in calls)])


def _waits(
    call: PlainLog, start: int, attempts: Sequence[tuple[PlainLog, Slice]]
) -> Iterator[Slice]:
    """Lay out the waits: a wait ends when the next attempt that is no hedge begins.

    The last one was cut short when the call ended, or goes on.
    """
    is_over = call.seconds("duration") is not None
    following = _ends(call, start)[0] if is_over else None
    for log, attempt in reversed(attempts):
        delay = _microseconds(log, "delay")
        end = attempt.end + delay
        if following is not None:
            end = max(attempt.end, following)
        begin = max(attempt.end, end - delay)
        yield from _unless_empty(Slice(Kind.WAIT, _wait_name(log), begin, end))
        if attempt.kind is not Kind.HEDGE:
            following = attempt.start
    first = attempts[0][1].start
    begin = first - _microseconds(call, "delay")
    yield from _unless_empty(Slice(Kind.WAIT, _wait_name(call), begin, first))


def _calls(log: PlainLog) -> list[Slice]:
    return [call for call in map(slice_of, log.calls) if call is not None]


def _unless_empty(part: Slice) -> Iterator[Slice]:
    if part.start < part.end:
        yield part


def _start(log: PlainLog) -> int | None:
    started = log.started
    if started is None or not _EPOCH.year <= started.year < _LAST_YEAR:
        return None
    return (started - _EPOCH) // _MICROSECOND


def _ends(log: PlainLog, start: int) -> tuple[int, int]:
    """Return when it was answered or failed, and when all of it was over."""
    answered = start + _microseconds(log, "duration")
    return answered, max(answered, start + _microseconds(log, "total_duration"))


def _microseconds(log: PlainLog, key: str) -> int:
    return round((log.seconds(key) or 0.0) * 1e6)


def _name(call: PlainLog) -> str:
    """Name a call by what many calls have in common: no query, and no user."""
    url = call.text("request_url") or ""
    where = _BEFORE_HOST.sub("", url, count=1).partition("#")[0].partition("?")[0]
    method = call.text("request_method") or call.text("name")
    return " ".join(filter(None, (method, where))) or Kind.CALL


def _outcome(log: PlainLog) -> str:
    """Say in few words how an attempt ended."""
    if log.flag("superseded"):
        return "superseded"
    status = log.number("response_status")
    if status is not None:
        return f"{status} {log.text('response_reason') or ''}".rstrip()
    is_over = log.seconds("duration") is not None
    return log.cause_type or ("returned" if is_over else "no response yet")


def _wait_name(log: PlainLog) -> str:
    return f"wait: {log.text('delay_source') or 'unknown'}"


def _facts(log: PlainLog) -> dict[str, object]:
    facts: dict[str, object] = {
        **{key: log.text(key) for key in _TEXTS},
        **{key: log.number(key) for key in _NUMBERS},
        **{key: log.seconds(key) for key in _SECONDS},
        **{key: log.flag(key) for key in _FLAGS},
    }
    return {key: value for key, value in facts.items() if value is not None}
