"""Lay out a call to be drawn: its attempts and waits, in words and in time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from .._errors import RefusedRequestError, UnprocessedRequestError
from . import tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .facts import LogFacts


class OutcomeKind(StrEnum):
    """The ways for an attempt to end, as far as a colour can tell."""

    SUCCESS = "success"
    FAILURE = "failure"
    """A status of 400 or above."""

    ERROR = "error"
    """No response, or half a body."""

    REFUSED = "refused"
    """Refused by a decorator, not sent."""

    SUPERSEDED = "superseded"
    """Given up for the good answer of another request."""

    CANCELLED = "cancelled"
    RUNNING = "running"

    @classmethod
    def of(cls, log: LogFacts) -> OutcomeKind:
        """Classify what a log says up to now."""
        if log.superseded:
            return cls.SUPERSEDED
        status, cause = log.response_status, log.response_cause
        if status is not None and status >= 400:
            return cls.FAILURE
        if cause is None:
            return cls.RUNNING if log.duration is None else cls.SUCCESS
        if isinstance(cause, RefusedRequestError | UnprocessedRequestError):
            return cls.REFUSED
        return cls.ERROR if isinstance(cause, Exception) else cls.CANCELLED


COLOURS: Final[Mapping[OutcomeKind, tuple[str, str, str]]] = {
    OutcomeKind.SUCCESS: ("green", "#1a7f37", "#3fb950"),
    OutcomeKind.FAILURE: ("red", "#cf222e", "#f85149"),
    OutcomeKind.ERROR: ("magenta", "#8250df", "#bc8cff"),
    OutcomeKind.REFUSED: ("cyan", "#1b7c83", "#39c5cf"),
    OutcomeKind.SUPERSEDED: ("bright_black", "#6e7781", "#8b949e"),
    OutcomeKind.CANCELLED: ("yellow", "#9a6700", "#d29922"),
    OutcomeKind.RUNNING: ("blue", "#0969da", "#58a6ff"),
}
"""The colour of an outcome in a terminal, in a picture by day, and by night."""


MAY_VANISH: Final = {"body", "connection"}
"""Parts of a bar that are omitted if too short."""


class Span(NamedTuple):
    """A time with a beginning and an end, in seconds from the start of the call."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Bar:
    """An attempt and the wait after it; or the wait before the first one, alone.

    A call that was made inside an attempt has one too.
    """

    log: LogFacts
    """The log of the attempt; that of the call for a wait before the first one."""

    outcome: OutcomeKind
    row: tree.Row | tree.Headline
    """The text beside the bar."""

    parts: Mapping[str, Span]
    """The ``wait``, ``body``, ``attempt`` and ``connection`` of the bar, if any.

    They are drawn in turn: the wait for a connection is a part of the attempt.

    Just ``call`` for a call inside that has attempts.
    """

    inside: tuple[Bar, ...] = ()
    """The bars inside this one: calls in an attempt, attempts in a call."""

    @property
    def end(self) -> float:
        """The end of the last part of the bar."""
        ends = (span.end for span in self.parts.values())
        return max((*ends, *(bar.end for bar in self.inside)), default=0.0)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A call in words, and in seconds from its start."""

    log: LogFacts
    headline: tree.Headline

    attempts: tuple[LogFacts, ...]
    """The logs that were laid out; a call under way may have more by now."""

    bars: tuple[Bar, ...]
    """In the order of the attempts."""

    end: float
    """The end of the last part that is known; >= 0."""

    deadline: float | None
    """The deadline of the call."""


def timeline(log: LogFacts) -> Timeline:
    """Lay out a call to be drawn, under way or over.

    A wait has no time of its own in the log, only a length. It ends when the next
    attempt begins; the last one, which was cut short or goes on, when all ends.
    """
    attempts = log.children
    bars = _bars(log, attempts, log.started)
    words = tree.headline(log, attempts)
    end = max(bar.end for bar in bars)
    return Timeline(log, words, attempts, bars, end, log.response_timeout)


def _bars(
    log: LogFacts, attempts: tuple[LogFacts, ...], origin: float
) -> tuple[Bar, ...]:
    """Lay out the attempts of a call, in seconds from *origin*."""
    delay = log.delay
    # A call that was waiting for a permit to begin has made no attempt.
    shown = attempts or ((log,) if delay is None or log.sent else ())
    rows = tree.aligned_rows(attempts) or [tree.Row(outcome=tree.describe_outcome(log))]
    now = log.started - origin
    now += log._elapsed() if log.duration is None else log.duration
    spans = until_next(shown, now, origin)
    bars = []
    if delay is not None:
        row = tree.Row(wait=f"waited {tree.describe_delay(log)}")
        # Without attempts the wait is a part of what the call took.
        start = spans[0].start if spans else now
        first = start if shown == attempts else start + delay
        parts = {"wait": _wait(delay, log.started - origin, first)}
        bars.append(Bar(log, OutcomeKind.of(log), row, parts))
    if attempts:
        # A retrying decorator of the user's own makes attempts without calls.
        bars += _calls(log, origin)
    for attempt, row, span in zip(shown, rows, spans, strict=False):
        parts = _parts(attempt, span, now)
        calls = _calls(attempt, origin)
        bars.append(Bar(attempt, OutcomeKind.of(attempt), row, parts, calls))
    return tuple(bars)


def until_next(
    attempts: Sequence[LogFacts], now: float, origin: float = 0.0
) -> list[Span]:
    """Return when each attempt began, and when the next that is not a hedge began."""
    spans: list[Span] = []
    following = now
    for attempt in reversed(attempts):
        start = attempt.started - origin
        spans.append(Span(start, following))
        following = following if attempt.is_hedge else start
    return spans[::-1]


def _calls(log: LogFacts, origin: float) -> tuple[Bar, ...]:
    """Lay out the calls that were made inside an attempt."""
    bars = [_call(call, origin) for call in log.calls]
    rest = tree.more_calls(log)
    if rest is not None:
        bars.append(Bar(log, OutcomeKind.of(log), tree.Row(wait=rest), {}))
    return tuple(bars)


def _call(log: LogFacts, origin: float) -> Bar:
    attempts = log.children
    inside = _bars(log, attempts, origin)
    kind, words = OutcomeKind.of(log), tree.headline(log, attempts)
    if attempts:
        start, end = log.started - origin, max(bar.end for bar in inside)
        return Bar(log, kind, words, {"call": Span(start, end)}, inside)
    # A wait before its one request is on top of the time that it is a part of.
    parts = {part: span for bar in reversed(inside) for part, span in bar.parts.items()}
    return Bar(log, kind, words, parts, inside[-1].inside)


def _parts(log: LogFacts, until_next: Span, now: float) -> dict[str, Span]:
    start, following = until_next
    parts, duration = {}, log.duration
    end = max(start, now) if duration is None else start + duration
    was_stale = log.delay_source == "stale_connection"
    if log.delay is not None and log.attempt is not None and not was_stale:
        parts["wait"] = _wait(log.delay, end, following)
    if duration is not None:
        total = log.total_duration
        body_end = start + (log._elapsed() if total is None else total)
        if body_end > end:
            parts["body"] = Span(end, body_end)
    # To the headers or the failure; to now while it is under way.
    parts["attempt"] = Span(start, end)
    timings = tree.long_wait(log)
    if timings is not None:
        # After redirects in one piece, as the log has the sums alone.
        begun = start + log._sent_after()
        parts["connection"] = Span(begun, min(end, begun + timings.waited))
    return parts


def _wait(seconds: float, earliest: float, following: float) -> Span:
    end = max(earliest, following)
    return Span(max(earliest, end - seconds), end)
