"""Count calls by the minute in which they began; by longer steps if there are many."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from .answers import Moment, Storm, Timeline
from .counts import ratio, whole
from .histogram import Histogram
from .outcome import is_cancelled
from .tally import stop_reason
from .values import text
from .words import share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .seen_call import SeenCall

_MINUTE: Final = 60
_MOST_STEPS: Final = 1440
_STORM: Final = 0.2
_LEAST_RETRIES: Final = 10
"""A storm has so many retries at least."""

_NOT_OUR_IDEA: Final = frozenset(
    {"next_endpoint", "retry_after", "stale_connection", "token"}
)
"""The reasons for another request that do not load a server that is in trouble."""

_LONGER: Final = tuple(minutes * _MINUTE for minutes in (2, 10, 30, 60, 180, 720, 1440))
"""The steps after a minute; each is a multiple of the one before."""

_EPOCH: Final = datetime(1970, 1, 1)
_EARLIEST: Final = (datetime.min - _EPOCH).total_seconds()
_LATEST: Final = (datetime.max.replace(microsecond=0) - _EPOCH).total_seconds()


class Unasked(NamedTuple):
    """Retries in a step of time that no server had asked for."""

    retries: float
    share: float
    """The part of the requests that are retries, from 0 to 1."""


_NONE: Final = Unasked(0.0, 0.0)


class _Counts:
    """The calls that began in a step."""

    __slots__ = (
        "attempts",
        "calls",
        "durations",
        "failures",
        "retries",
        "unasked",
    )

    def __init__(self) -> None:
        self.calls = self.failures = self.attempts = self.retries = 0.0
        self.unasked = 0.0
        self.durations = Histogram()

    def merge(self, other: _Counts) -> None:
        self.calls += other.calls
        self.failures += other.failures
        self.attempts += other.attempts
        self.retries += other.retries
        self.unasked += other.unasked
        self.durations.merge(other.durations)


class Minutes:
    """Counts calls by steps of time, of which there are 1,440 at most."""

    def __init__(self) -> None:
        self._step = _MINUTE
        self._steps: dict[int, _Counts] = {}
        self._first = self._last = 0
        self._has_limiter = False

    def add(self, call: SeenCall, started: float, weight: float) -> None:
        """Count a call that began at a moment, in seconds since 1970."""
        counts = self._steps.get(int(started // self._step))
        while counts is None:
            counts = self._new(int(started // self._step))
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

    def _new(self, position: int) -> _Counts | None:
        """Begin a step; None where there would be too many, and they grew."""
        if position in self._steps:
            return self._steps[position]
        first = min(self._first, position) if self._steps else position
        last = max(self._last, position) if self._steps else position
        if last - first >= _MOST_STEPS:
            self._grow()
            return None
        self._first, self._last = first, last
        counts = self._steps[position] = _Counts()
        return counts

    def _grow(self) -> None:
        """Make the steps longer."""
        longer = next((each for each in _LONGER if each > self._step), 2 * self._step)
        factor = longer // self._step
        before, self._steps, self._step = self._steps, {}, longer
        for position, counts in before.items():
            self._steps.setdefault(position // factor, _Counts()).merge(counts)
        self._first, self._last = min(self._steps), max(self._steps)

    def answer(self) -> Timeline:
        """Return what is shown."""
        positions = sorted(self._steps)
        moments = tuple(self._moment(position) for position in positions)
        storms = tuple(self._storm(run) for run in self._runs(positions))
        said = None
        if self._step > _MINUTE:
            said = f"a step is {self._step // _MINUTE:,} minutes long"
        return Timeline(self._step, said, moments, storms)

    def unasked(self) -> Unasked:
        """Return the worst step, without cancelled calls; none where a limiter is."""
        if self._has_limiter:
            return _NONE
        storms = (
            Unasked(whole(counts.unasked), ratio(counts.unasked, counts.attempts))
            for counts in self._steps.values()
            if counts.unasked >= _LEAST_RETRIES
        )
        worst = max(storms, key=lambda storm: storm.share, default=_NONE)
        return worst if worst.share > _STORM else _NONE

    def _moment(self, position: int) -> Moment:
        counts = self._steps[position]
        return Moment(
            self._written(position),
            whole(counts.calls),
            whole(counts.failures),
            whole(counts.attempts),
            whole(counts.retries),
            ratio(counts.retries, counts.attempts),
            counts.durations.quantile(0.99),
            counts.durations.largest,
        )

    def _written(self, position: int) -> str:
        return utc(position * self._step)

    def _runs(self, positions: Sequence[int]) -> Iterator[list[int]]:
        """Yield steps with many retries that follow each other."""
        run: list[int] = []
        for position in positions:
            if run and position != run[-1] + 1:
                yield run
                run = []
            if self._is_storm(position):
                run.append(position)
            elif run:
                yield run
                run = []
        if run:
            yield run

    def _is_storm(self, position: int) -> bool:
        counts = self._steps[position]
        is_large = ratio(counts.retries, counts.attempts) > _STORM
        return is_large and counts.retries >= _LEAST_RETRIES

    def _storm(self, run: Sequence[int]) -> Storm:
        total = _Counts()
        for position in run:
            total.merge(self._steps[position])
        started, ended = self._written(run[0]), self._written(run[-1] + 1)
        part = ratio(total.retries, total.attempts)
        said = f"retry storm from {started} to {ended}: {share(part)} of the requests"
        return Storm(
            started,
            ended,
            whole(total.attempts),
            whole(total.retries),
            part,
            f"{said} were retries",
        )


def _unasked(call: SeenCall) -> float:
    """Count retries of a call, and of those inside, that were its own idea."""
    own = sum(
        attempt.is_retried
        and not attempt.is_hedge
        and text(attempt.values, "delay_source") not in _NOT_OUR_IDEA
        for attempt in call.attempts
    )
    inside = sum(_unasked(each) for attempt in call.attempts for each in attempt.calls)
    return inside if is_cancelled(call.values) else own + inside


def utc(seconds: float) -> str:
    """Write a moment in UTC, without the parts of a second.

    >>> utc(60.5)
    '1970-01-01T00:01:00Z'
    """
    seconds = min(max(seconds, _EARLIEST), _LATEST)
    return f"{(_EPOCH + timedelta(seconds=int(seconds))).isoformat()}Z"
