"""Lay out the attempts of a call, and the waits between them, in time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from .._errors import RefusedRequestError, UnprocessedRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .record import LogRecord


class Outcome(StrEnum):
    """The outcome of an attempt, as far as a colour can tell."""

    SUCCESS = "success"
    FAILURE = "failure"
    """A status of 400 or above."""

    ERROR = "error"
    """No response, or half a body."""

    REFUSED = "refused"
    """Nothing was sent: refused on this side."""

    CANCELLED = "cancelled"
    RUNNING = "running"

    @classmethod
    def of(cls, log: LogRecord) -> Outcome:
        """Classify what a log says up to now."""
        status, cause = log.response_status, log.response_cause
        if status is not None and status >= 400:
            return cls.FAILURE
        if cause is None:
            return cls.RUNNING if status is None else cls.SUCCESS
        if isinstance(cause, RefusedRequestError | UnprocessedRequestError):
            return cls.REFUSED
        return cls.ERROR if isinstance(cause, Exception) else cls.CANCELLED


class Span(NamedTuple):
    """A time with a beginning and an end, in seconds from the start of the call."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Bar:
    """An attempt and the wait after it; or the wait before the first one, alone."""

    log: LogRecord
    """The log of the attempt; that of the call for a wait before the first one."""

    attempt: Span | None
    """To the headers or the failure; to now while it is under way."""

    body: Span | None = None
    """From the headers to the end of the body; to now while it is under way."""

    wait: Span | None = None
    """What was waited afterwards."""

    @property
    def is_first_wait(self) -> bool:
        """Whether it is the wait before the first attempt."""
        return self.attempt is None

    @property
    def outcome(self) -> Outcome:
        """The outcome of the attempt."""
        return Outcome.of(self.log)

    def spans(self) -> Iterator[Span]:
        """Yield what there is of it."""
        yield from filter(None, (self.body, self.wait, self.attempt))


@dataclass(frozen=True, slots=True)
class Timeline:
    """A call in seconds from its start."""

    attempts: tuple[LogRecord, ...]
    """The logs that were laid out; a call under way may have more by now."""

    bars: tuple[Bar, ...]
    """In the order of the attempts."""

    end: float
    """When the last thing ended that is known of; >= 0."""

    deadline: float | None
    """When the time of the call runs, or ran, out."""


def timeline(log: LogRecord) -> Timeline:
    """Lay out a call, under way or over.

    A wait has no time of its own in the log, only a length. It ends when the next
    attempt begins; the last one, which was cut short or goes on, when all ends.
    """
    attempts, delay = log.children, log.delay
    # A call that was waiting for leave to begin has made no attempt.
    shown = attempts or ((log,) if delay is None else ())
    starts = [attempt.started - log.started for attempt in shown]
    now = log.duration
    if now is None:
        now = _elapsed(log)
    bars = [] if delay is None else [_first_wait(log, delay, starts, now)]
    followings = [*starts, now][1:]
    for attempt, start, following in zip(shown, starts, followings, strict=True):
        bars.append(_bar(attempt, start, following, now))
    ends = [span.end for bar in bars for span in bar.spans()]
    return Timeline(attempts, tuple(bars), max(ends), log.response_timeout)


def _first_wait(log: LogRecord, delay: float, starts: list[float], now: float) -> Bar:
    following = starts[0] if starts else now
    return Bar(log, None, wait=_wait(delay, 0.0, following))


def _bar(log: LogRecord, start: float, following: float, now: float) -> Bar:
    duration, delay = log.duration, log.delay
    end = max(start, now) if duration is None else start + duration
    body = None if duration is None else _body(log, start, end)
    wait = None if delay is None else _wait(delay, end, following)
    return Bar(log, Span(start, end), body, wait)


def _body(log: LogRecord, start: float, headers: float) -> Span | None:
    total = log.total_duration
    end = start + (_elapsed(log) if total is None else total)
    return Span(headers, end) if end > headers else None


def _wait(seconds: float, earliest: float, following: float) -> Span:
    end = max(earliest, following)
    return Span(max(earliest, end - seconds), end)


def _elapsed(log: LogRecord) -> float:
    return log._call.loop.time() - log.started
