"""The answers of a report, which all its views show, and their numbers in words.

The names of the fields are the keys of ``Report.to_dict()``, which are published.
Counts weigh sampled lines by 1/rate, so they are whole numbers unless there are such.
Times are seconds, shares are from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from .._text.printable import printable

Line: TypeAlias = "dict[str, object]"
"""A call read from a line, masked, and cleaned of foreign members."""


@dataclass(slots=True)
class Input:
    """Counts of the lines read, and of unusable lines."""

    by: str
    """The key of groups: host, method, path, endpoint or name."""

    sources: list[str] = field(default_factory=list)
    """The names of the files; ``-`` is standard input."""

    lines: int = 0
    """Lines that were not empty."""

    calls: int = 0
    """Lines with a call that is counted; sampled calls count once."""

    inside: int = 0
    """Lines of nested calls, which are counted with the outer call."""

    left_out: int = 0
    """Calls that ``--since``, ``--until`` or ``--match`` left out."""

    skipped: Mapping[str, int] = field(default_factory=dict)
    """Lines that were no calls, by reason.

    ``no_json``, ``no_call``, ``attempt``, ``not_nested``, ``several``, ``too_long``,
    ``too_deep``, ``under_way``.
    """

    without_id: int = 0
    """Calls of lines that older versions wrote."""

    unknown_bodies: int = 0
    """Calls with a response of whose body the line does not know the end."""

    sampled: int = 0
    """Calls of lines with a sampling rate."""

    sampled_by_function: int = 0
    """Calls of lines that a function of the user's chose: these are not weighed."""

    started_at: str | None = None
    """When the first call began, in UTC."""

    ended_at: str | None = None
    """The end (headers or failure) of the last started call."""

    warnings: list[str] = field(default_factory=list)
    """The limits of these numbers, in words."""


@dataclass(frozen=True, slots=True)
class Durations:
    """How long calls took to the headers or the failure; None without any."""

    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of success, with and without retries."""

    calls: float
    successes: float
    success: float
    """The share of calls that were successes."""

    successes_without_retries: float
    """Calls that succeeded without a retry, including nested calls."""

    success_without_retries: float
    """The share of calls that would have been successes had nothing been retried."""

    successes_by_retries: float
    """Calls that succeeded only by retries, without calls saved by a fallback."""

    attempts: float
    """Requests of the calls, all that follow included; a call makes one at least."""

    attempts_per_call: float

    extra_requests: float
    """Requests beyond the first of each call; those of calls inside too."""

    extra_requests_per_call: float

    retries: float
    hedges: float
    resends: float
    """Requests that were sent again because a connection was stale."""

    resumes: float
    """Requests for the rest of a download."""

    duration: Durations


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of the time that calls took."""

    part: str
    """The kind of part.

    ``answer``, ``failed_attempt``, ``superseded``, ``connection_queue``, ``dns``,
    ``connect``, ``wait``, ``body`` or ``other``.
    """

    source: str | None
    """The reason for a ``wait``: backoff, retry_after, rate_limit, ..."""

    seconds: float
    share: float
    slowest_seconds: float
    """Those in the slowest 5 % of the calls."""

    slowest_share: float


@dataclass(frozen=True, slots=True)
class Time:
    """Where the time went: in all calls, and in the slowest 5 %."""

    seconds: float
    """The total time, in seconds."""

    parts: list[TimePart]
    """The parts of the time, in the order of their share in the slowest calls."""

    slowest_calls: float
    slowest_from: float | None
    """How long the quickest of the slowest calls took."""

    slowest_seconds: float

    said: str
    """The parts of the time of the slowest calls, in words."""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Calls with a common host, method, path, endpoint or name."""

    key: str
    """The value; "others" if :attr:`merged` is not 0."""

    merged: int
    """The number of values merged into this row."""

    calls: float
    successes: float
    success: float
    attempts: float
    attempts_per_call: float
    duration: Durations
    waited: float
    """Seconds of waits between attempts, and before the first one."""

    stop_reasons: Mapping[str, float]
    """Why calls stopped without success, the most frequent reason first."""

    slowest: list[TimePart]
    """The parts of the time of the slowest 5 % of these calls, the largest first."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Failed calls with the same stop reason and outcome."""

    stop_reason: str | None
    """The stop reason; None without a retrying client."""

    outcome: str
    """The status, or the class of the exception."""

    calls: float
    example: Line | None
    """The first call of this kind."""


@dataclass(frozen=True, slots=True)
class FailureRow:
    """Attempts to an endpoint, host or function that failed in the same way."""

    where: str
    """The endpoint, else the host, else the name of the function."""

    outcome: str
    """The status, the exception class, or a text like "200, retried"."""

    attempts: float
    sent: float
    """Failed attempts that may have reached a server."""

    not_sent: float
    retried: float
    """Failed attempts that were retried."""

    refused_by_budget: float
    """Failed attempts whose retry was refused by a limiter (a retry budget)."""

    refused: float
    """Attempts refused on this side, by a circuit breaker, a limit or a group."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The calls that began in a step of time."""

    started_at: str
    calls: float
    failures: float
    attempts: float
    retries: float
    retry_share: float
    """The share of the attempts that were retries."""

    p99: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class CallsByTime:
    """The calls by time; steps without calls are left out."""

    step: int
    """Seconds of a step, by the span of all calls: at most 120 steps."""

    said: str
    """The step in words."""

    moments: list[Moment]

    def series(self, name: str) -> list[float | None]:
        """Return a number of each step, in order; None of a step without calls."""
        starts = [datetime.fromisoformat(each.started_at) for each in self.moments]
        step = timedelta(seconds=self.step)
        numbers = {
            (start - starts[0]) // step: getattr(moment, name)
            for start, moment in zip(starts, self.moments, strict=True)
        }
        return [numbers.get(place) for place in range(max(numbers) + 1)]


@dataclass(frozen=True, slots=True)
class Examples:
    """Example calls to look at, as saved lines."""

    slowest: list[Line]
    most_attempts: list[Line]


@dataclass(frozen=True, slots=True)
class Hint:
    """A change that a number suggests."""

    hint: str
    """The stable name of the hint."""

    said: str
    """The number and what it means, in a sentence or two."""

    setting: str
    """The setting to change."""

    where: str | None
    """The host or endpoint of the hint, if any."""

    figures: Mapping[str, float]
    """The numbers that support the hint."""


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers of a report, in the order in which they are shown."""

    v: int
    input: Input
    summary: Summary
    groups: list[GroupRow]
    time: Time
    endings: list[Ending]
    failures: list[FailureRow]
    timeline: CallsByTime
    examples: Examples
    hints: list[Hint]

    def to_dict(self) -> dict[str, object]:
        """Return the answers as JSON values."""
        return asdict(self)


NOTHING: Final = "-"

_PARTS: Final = {
    "answer": "answers",
    "failed_attempt": "failed attempts",
    "superseded": "overtaken by a hedge",
    "connection_queue": "the pool's queue",
    "dns": "DNS",
    "connect": "connecting",
    "body": "bodies",
    "other": "between attempts",
}
_SPENT: Final = {
    "answer": "on answers",
    "failed_attempt": "on failed attempts",
    "superseded": "on requests that a hedge overtook",
    "connection_queue": "in the pool's queue",
    "dns": "on DNS",
    "body": "on bodies",
}
"""Phrases for parts of the time, if different from their names."""

_MOST_SAID: Final = 3
_LEAST_SAID: Final = 0.02
_WAITS: Final = {
    "backoff": "waiting for the backoff",
    "retry_after": "waiting for Retry-After",
    "rate_limit": "waiting for a rate limit",
    "circuit_breaker": "waiting for an open circuit",
    "endpoint": "waiting for an endpoint",
}


def seconds(value: float | None) -> str:
    """Write a time, in a unit that needs few digits.

    >>> [seconds(value) for value in (None, 0.0, 0.00042, 0.0106, 0.9999)]
    ['-', '0 s', '0.42 ms', '10.6 ms', '1,000 ms']
    >>> [seconds(value) for value in (1.0, 2.0543, 99.95, 168.7, 3600.0, 5000.0)]
    ['1.00 s', '2.05 s', '100 s', '169 s', '1.00 h', '1.39 h']
    """
    if value is None:
        return NOTHING
    if not value:
        return "0 s"
    if value < 1:
        return f"{_three_digits(value * 1000)} ms"
    if value < 3600:
        return f"{_three_digits(value)} s"
    return f"{_three_digits(value / 3600)} h"


def _three_digits(value: float) -> str:
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f}"


def share(value: float) -> str:
    """Write a share in percent; what is no 100 % does not look like it.

    >>> [share(value) for value in (0, 0.00001, 0.002, 0.3, 0.9305, 0.99996, 1)]
    ['0 %', '< 0.01 %', '0.20 %', '30.00 %', '93.05 %', '> 99.99 %', '100 %']
    """
    if 0.9999 < value < 1:
        return "> 99.99 %"
    if 0 < value < 0.0001:
        return "< 0.01 %"
    digits = 0 if value in {0, 1} else 2
    return f"{value:.{digits}%}".replace("%", " %")


def count(value: float) -> str:
    """Write a count, which is no whole number where lines were sampled.

    >>> count(20000), count(33.3333)
    ('20,000', '33.3')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def reason(value: str | None) -> str:
    """Name the reason for a call to stop: a limiter is a budget to most people.

    >>> reason("limiter"), reason("deadline"), reason(None)
    ('retry budget', 'deadline', '-')
    """
    return "retry budget" if value == "limiter" else value or NOTHING


def counted(value: float, noun: str) -> str:
    """Write a count of things that have a name.

    >>> counted(1, "call"), counted(1.5, "call"), counted(2000, "call")
    ('1 call', '1.5 calls', '2,000 calls')
    """
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def part(value: TimePart) -> str:
    """Name a part of the time."""
    if value.source is None:
        return _PARTS[value.part]
    return _WAITS.get(value.source, f"waiting ({value.source})")


def shares_in_words(parts: Sequence[TimePart]) -> str:
    """Say what slow calls spent their time on: the largest parts."""
    named = [
        f"{share(each.slowest_share)} {_SPENT.get(each.part) or part(each)}"
        for each in parts[:_MOST_SAID]
        if each.slowest_share >= _LEAST_SAID
    ]
    return ", ".join(named) or "no time"


def per_call(value: float) -> str:
    """Format a number per call, with three decimals.

    >>> per_call(1.0741)
    '1.074'
    """
    return f"{value:,.3f}"


def requests_without_retries(summary: Summary) -> float:
    """Return the requests of each call that are no retries: one, and what is kin."""
    further = summary.hedges + summary.resends + summary.resumes
    return 1 + further / summary.calls if summary.calls else 1.0


def retries_in_words(summary: Summary) -> str | None:
    """Describe the benefit and the cost of retries; None without retries."""
    if not summary.retries:
        return None
    saved = summary.successes_by_retries / summary.calls
    cost = per_call(summary.retries / summary.calls)
    return f"retries saved {share(saved)} of the calls and cost {cost} requests each"


_SKIPPED: Final = {
    "no_json": "no JSON",
    "no_call": "no calls",
    "attempt": "attempts alone: put the LoggingClient outside the retrying client",
    "not_nested": "not nested: use LogFormatter.json(nested=True)",
    "several": "several calls each: write each call on a line of its own",
    "too_long": "longer than 16 MB",
    "too_deep": "nested too deep",
    "under_way": "calls under way",
}


def input_in_words(read: Input) -> Iterator[str]:
    """Yield what could not be used, and what a reader of the numbers must know."""
    if read.left_out:
        yield f"filtered out: {counted(read.left_out, 'call')}"
    if read.inside:
        yield f"left out: {counted(read.inside, 'line')} of nested calls"
    for reason, lines in read.skipped.items():
        yield f"skipped: {counted(lines, 'line')}, {_SKIPPED.get(reason, reason)}"
    if read.sampled:
        yield f"sampled: {counted(read.sampled, 'line')}, for more calls than one each"
    if read.unknown_bodies:
        yield f"unknown: the end of the body, of {counted(read.unknown_bodies, 'call')}"
    if read.without_id:
        yield f"without id: {counted(read.without_id, 'call')} of older versions"
    yield from map(line_of_warning, read.warnings)


def line_of_warning(warning: str) -> str:
    """Return the line of a warning, which may have the name of a file."""
    return printable(f"warning: {warning}")
