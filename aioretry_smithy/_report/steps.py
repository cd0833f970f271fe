"""Count calls by the time when they began, in steps that go by the span of all."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from .answers import Moment, Timeline
from .counts import ratio, whole
from .histogram import Histogram
from .outcome import is_cancelled
from .table import Sums
from .tally import stop_reason
from .values import text

if TYPE_CHECKING:
    from .seen_call import SeenCall

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


class _Counts(Sums):
    """The calls that began in a step."""

    __slots__ = ("attempts", "calls", "durations", "failures", "retries", "unasked")

    attempts: float
    calls: float
    failures: float
    retries: float
    unasked: float
    durations: Histogram

    def __init__(self) -> None:
        super().__init__()
        self.durations = Histogram()


class Steps:
    """Counts calls by steps of time: a second at least, 1,440 steps at most."""

    def __init__(self) -> None:
        self._step = 1
        self._steps: dict[int, _Counts] = {}
        self._first = self._last = 0
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
        """Return the step of a moment; where there are too many, they grow before."""
        position = int(started // self._step)
        if position not in self._steps:
            if not self._steps:
                self._first = self._last = position
            first, last = min(self._first, position), max(self._last, position)
            if last - first >= _MOST_COUNTED:
                step = _fitting(self._step, (last - first) * self._step, _MOST_COUNTED)
                self._steps, self._step = self._grown(step), step
                self._first, self._last = min(self._steps), max(self._steps)
                return self._at(started)
            self._first, self._last = first, last
            self._steps[position] = _Counts()
        return self._steps[position]

    def _grown(self, step: int) -> dict[int, _Counts]:
        """Return the same in longer steps."""
        grown: dict[int, _Counts] = {}
        for position, counts in self._steps.items():
            merged = grown.setdefault(position * self._step // step, _Counts())
            merged.merge(counts)
        return grown

    def answer(self) -> Timeline:
        """Return what is shown."""
        span = (self._last - self._first) * self._step
        step = _fitting(self._step, span, _MOST_SHOWN)
        moments = (
            Moment(
                utc(position * step),
                whole(counts.calls),
                whole(counts.failures),
                whole(counts.attempts),
                whole(counts.retries),
                ratio(counts.retries, counts.attempts),
                counts.durations.quantile(0.99),
                counts.durations.largest,
            )
            for position, counts in sorted(self._grown(step).items())
        )
        return Timeline(step, f"by the {_name(step)}", tuple(moments))

    def unasked(self) -> Unasked:
        """Return the worst minute, without cancelled calls; none where a limiter is."""
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
    """Return the shortest step, of those that grow from one, with which a span fits."""
    longer = iter(each for each in _NAMES if each > step)
    while span // step >= most:
        step = next(longer, 2 * step)
    return step


def _name(step: int) -> str:
    return _NAMES.get(step) or f"{step // 86_400:,} days"


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
