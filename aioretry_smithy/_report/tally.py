"""Add up what calls have in common: in all, by key, and by time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Self

from . import answers
from .fields import Histogram, Sums, Totals, is_cancelled, ratio, text, value_of, whole
from .seen_call import Part, SeenCall

_SLOW: Final = 0.95


class Times:
    """The durations of calls, and the parts of their time, by duration."""

    __slots__ = ("durations", "spent")

    durations: Histogram
    spent: defaultdict[int, Totals[Part]]
    """Seconds of the parts, by the bucket of the histogram."""

    def __init__(self) -> None:
        self.durations = Histogram()
        self.spent = defaultdict(Totals)

    def add(self, call: SeenCall, parts: Mapping[Part, float], weight: float) -> None:
        """Add a call; one whose duration is not known counts in no quantile."""
        if call.duration is not None:
            self.durations.add(call.bucket, call.duration, weight)
            self.spent[call.bucket].add(parts.items(), weight)

    def __iadd__(self, other: Times) -> Self:
        """Add the counts of *other*."""
        self.durations += other.durations
        for bucket, parts in other.spent.items():
            self.spent[bucket] += parts
        return self

    def quantiles(self) -> answers.Durations:
        """Return the quantiles for display."""
        p50, p95, p99 = map(self.durations.quantile, (0.5, 0.95, 0.99))
        return answers.Durations(p50, p95, p99, self.durations.largest)

    def slowest(self) -> tuple[float, float | None, int | None]:
        """Return how many calls are the slowest 5 %, from which time and bucket on."""
        bucket = self.durations.bucket_at(_SLOW)
        if bucket is None:
            return 0.0, None, None
        buckets = self.durations.buckets
        calls = sum(weight for each, weight in buckets.items() if each >= bucket)
        least = min(value_of(bucket), self.durations.largest or 0.0)
        return calls, least, bucket

    def parts(self) -> list[answers.TimePart]:
        """Return the parts, what takes the slowest calls the longest first."""
        _, _, bucket = self.slowest()
        every, slow = Totals[Part](), Totals[Part]()
        for each, spent in self.spent.items():
            every += spent
            if bucket is not None and each >= bucket:
                slow += spent
        total, slow_total = sum(every.values()), sum(slow.values())
        parts = [
            answers.TimePart(
                *part,
                seconds,
                ratio(seconds, total),
                slow.get(part, 0.0),
                ratio(slow.get(part, 0.0), slow_total),
            )
            for part, seconds in every.items()
        ]
        return sorted(parts, key=_rank)

    def answer(self) -> answers.Time:
        """Return the times for the report."""
        parts = self.parts()
        calls, least, _ = self.slowest()
        said = "no call has a known duration"
        if least is not None:
            which = f"{answers.counted(whole(calls), 'call')}, from "
            which += f"{answers.seconds(least)} on"
            said = f"the slowest 5 % ({which}) spent {answers.shares_in_words(parts)}"
        return answers.Time(
            sum(part.seconds for part in parts),
            parts,
            whole(calls),
            least,
            sum(part.slowest_seconds for part in parts),
            said,
        )


def _rank(part: answers.TimePart) -> tuple[float, float, str]:
    """Return the sort key of a part, insensitive to rounding errors."""
    slow, every = round(part.slowest_seconds, 6), round(part.seconds, 6)
    return -slow, -every, f"{part.part} {part.source}"


_LONGEST_REASON: Final = 40
_MOST_REASONS: Final = 24
_OTHERS: Final = "others"


class Reasons(Totals[str]):
    """Counts of stop reasons, of which a line may have any: some, and "others"."""

    def add(self, numbers: Iterable[tuple[str, float]], weight: float = 1.0) -> Self:
        """Add numbers by reason."""
        for reason, number in numbers:
            is_own = reason in self or len(self) < _MOST_REASONS
            super().add([(reason if is_own else _OTHERS, number)], weight)
        return self


def most_first(counts: Mapping[str, float]) -> dict[str, float]:
    """Return counts, highest first, ties by name; integral counts become ints."""
    pairs = [(key, whole(value)) for key, value in counts.items()]
    return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def stop_reason(values: answers.Line) -> str | None:
    """Return why a call stopped, if the line says so."""
    reason = text(values, "stop_reason")
    return None if reason is None else reason[:_LONGEST_REASON]


@dataclass(slots=True)
class GroupTally(Sums):
    """Adds up the calls of a group."""

    calls: float = 0.0
    attempts: float = 0.0
    successes: float = 0.0
    waited: float = 0.0
    times: Times = field(default_factory=Times)
    reasons: Reasons = field(default_factory=Reasons)

    def add(self, call: SeenCall, weight: float) -> None:
        """Add a call; its times apart."""
        self.calls += weight
        self.attempts += weight * len(call.attempts)
        self.waited += weight * call.waited
        if call.is_success:
            self.successes += weight
        else:
            reason = stop_reason(call.values)
            if reason is not None:
                self.reasons.add([(reason, weight)])

    def answer(self, key: str, merged: int = 0) -> answers.GroupRow:
        """Return the row for the report."""
        counts = self.counts() | {"waited": self.waited}
        return answers.GroupRow(
            key,
            merged,
            **counts,
            success=ratio(self.successes, self.calls),
            attempts_per_call=ratio(self.attempts, self.calls),
            duration=self.times.quantiles(),
            stop_reasons=most_first(self.reasons),
            slowest=self.times.parts(),
        )


@dataclass(slots=True)
class FailureTally(Sums):
    """Counts attempts with the same kind of failure."""

    attempts: float = 0.0
    sent: float = 0.0
    not_sent: float = 0.0
    retried: float = 0.0
    refused_by_budget: float = 0.0
    refused: float = 0.0


@dataclass(slots=True)
class EndingTally(Sums):
    """Counts calls that ended in the same way, and keeps the first."""

    calls: float = 0.0
    example: answers.Line | None = None

    def merge(self, other: Self) -> None:
        """Add the counts of *other*."""
        self.calls += other.calls


@dataclass(slots=True)
class SummaryTally(Sums):
    """Counts all calls."""

    calls: float = 0.0
    successes: float = 0.0
    successes_without_retries: float = 0.0
    successes_by_retries: float = 0.0
    attempts: float = 0.0
    extra_requests: float = 0.0
    retries: float = 0.0
    hedges: float = 0.0
    resends: float = 0.0
    resumes: float = 0.0

    def add(self, call: SeenCall, weight: float) -> None:
        """Add a call."""
        self.calls += weight
        self.successes += weight * call.is_success
        self.successes_without_retries += weight * call.is_success_at_once
        self.successes_by_retries += weight * call.is_rescued
        self.attempts += weight * len(call.attempts)
        self.extra_requests += weight * call.extra
        self.retries += weight * call.retries
        self.hedges += weight * call.hedges
        self.resends += weight * call.resends
        self.resumes += weight * call.resumes

    def answer(self, times: Times) -> answers.Summary:
        """Return the summary for the report."""
        calls = self.calls
        return answers.Summary(
            **self.counts(),
            success=ratio(self.successes, calls),
            success_without_retries=ratio(self.successes_without_retries, calls),
            attempts_per_call=ratio(self.attempts, calls),
            extra_requests_per_call=ratio(self.extra_requests, calls),
            duration=times.quantiles(),
        )


_MINUTE: Final = 60
_MOST_COUNTED: Final = 1440
_MOST_SHOWN: Final = 120
_STORM: Final = 0.2
_LEAST_RETRIES: Final = 10
"""A storm has so many retries at least."""

_NOT_OUR_IDEA: Final = frozenset(
    {"next_endpoint", "retry_after", "stale_connection", "token"}
)
"""The reasons for another request that do not load a server that is in trouble."""

_NAMES: Final = {
    1: "second",
    5: "5 seconds",
    10: "10 seconds",
    30: "30 seconds",
    60: "minute",
    300: "5 minutes",
    600: "10 minutes",
    1800: "30 minutes",
    3600: "hour",
    10_800: "3 hours",
    43_200: "12 hours",
    86_400: "day",
    604_800: "7 days",
}
"""The steps; each is a multiple of the one before."""

_EPOCH: Final = datetime(1970, 1, 1)
_EARLIEST: Final = (datetime.min - _EPOCH).total_seconds()
_LATEST: Final = (datetime.max.replace(microsecond=0) - _EPOCH).total_seconds()


class Unasked(NamedTuple):
    """Retries in a step of time that no server had asked for."""

    retries: float
    share: float
    """The part of the requests that are retries, from 0 to 1."""


_NONE: Final = Unasked(0.0, 0.0)


@dataclass(slots=True)
class _Counts(Sums):
    """The calls that began in a step."""

    calls: float = 0.0
    failures: float = 0.0
    attempts: float = 0.0
    retries: float = 0.0
    unasked: float = 0.0
    durations: Histogram = field(default_factory=Histogram)

    def answer(self, started: float) -> answers.Moment:
        """Return the row for the report."""
        return answers.Moment(
            utc(started),
            whole(self.calls),
            whole(self.failures),
            whole(self.attempts),
            whole(self.retries),
            ratio(self.retries, self.attempts),
            self.durations.quantile(0.99),
            self.durations.largest,
        )


class Steps:
    """Counts calls by steps of time: a second at least, 1,440 steps at most."""

    def __init__(self) -> None:
        self._step = 1
        self._steps: dict[int, _Counts] = {}
        self._has_limiter = False

    def add(self, call: SeenCall, started: float, weight: float) -> None:
        """Count a call that began at a moment, in seconds since 1970."""
        counts = self._at(started)
        counts.calls += weight
        counts.failures += weight * (not call.is_success)
        counts.attempts += weight * call.requests
        if call.retries:
            counts.retries += weight * call.retries
            counts.unasked += weight * _unasked(call)
        if not call.is_success and stop_reason(call.values) == "limiter":
            self._has_limiter = True
        if call.duration is not None:
            counts.durations.add(call.bucket, call.duration, weight)

    def _at(self, started: float) -> _Counts:
        """Return the step of a time; with too many steps, the step length grows."""
        position = int(started // self._step)
        if position not in self._steps:
            span = self._span(position)
            if span >= _MOST_COUNTED * self._step:
                step = _fitting(self._step, span, _MOST_COUNTED)
                self._steps, self._step = self._grown(step), step
                return self._at(started)
            self._steps[position] = _Counts()
        return self._steps[position]

    def _span(self, *more: int) -> int:
        """Return the seconds from the first to the last step, *more* ones included."""
        positions = [*self._steps, *more]
        return (max(positions, default=0) - min(positions, default=0)) * self._step

    def _grown(self, step: int) -> dict[int, _Counts]:
        """Return the same in longer steps."""
        grown: dict[int, _Counts] = {}
        for position, counts in self._steps.items():
            merged = grown.setdefault(position * self._step // step, _Counts())
            merged.merge(counts)
        return grown

    def answer(self) -> answers.CallsByTime:
        """Return the calls by time, for the report."""
        step = _fitting(self._step, self._span(), _MOST_SHOWN)
        moments = [
            counts.answer(position * step)
            for position, counts in sorted(self._grown(step).items())
        ]
        return answers.CallsByTime(step, f"by the {_name(step)}", moments)

    def unasked(self) -> Unasked:
        """Return the minute with the largest share of retries that no server wanted."""
        if self._has_limiter:
            return _NONE
        storms = (
            Unasked(whole(counts.unasked), ratio(counts.unasked, counts.attempts))
            for counts in self._grown(max(_MINUTE, self._step)).values()
            if counts.unasked >= _LEAST_RETRIES
        )
        worst = max(storms, key=lambda storm: storm.share, default=_NONE)
        return worst if worst.share > _STORM else _NONE


def _fitting(step: int, span: int, most: int) -> int:
    """Return the shortest step length with which *span* has less than *most* steps."""
    longer = iter(each for each in _NAMES if each > step)
    while span // step >= most:
        step = next(longer, 2 * step)
    return step


def _name(step: int) -> str:
    return _NAMES.get(step) or f"{step // 86_400:,} days"


def _unasked(call: SeenCall) -> float:
    """Count the retries that a call, or a call inside, decided on alone."""
    own = sum(
        attempt.is_retried
        and not attempt.is_hedge
        and text(attempt.values, "delay_source") not in _NOT_OUR_IDEA
        for attempt in call.attempts
    )
    inside = sum(map(_unasked, call.inside))
    return inside if is_cancelled(call.values) else own + inside


def utc(seconds: float) -> str:
    """Write a moment in UTC, without the parts of a second.

    >>> utc(60.5)
    '1970-01-01T00:01:00Z'
    """
    seconds = min(max(seconds, _EARLIEST), _LATEST)
    return f"{(_EPOCH + timedelta(seconds=int(seconds))).isoformat()}Z"
