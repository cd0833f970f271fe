"""Count calls, one after another, and answer the questions of a report."""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, Final

from .answers import Answers, Examples, Input, Summary, Time
from .cleaning import cleaned
from .counts import ratio, whole
from .evidence import Evidence
from .hints import Findings, hints
from .outcome import is_cancelled, is_refused, outcome_of, where
from .spending import spending
from .steps import Steps
from .table import Table
from .tally import EndingTally, FailureTally, GroupTally, stop_reason
from .times import Times
from .units import By, units
from .words import counted, seconds, shares_in_words

if TYPE_CHECKING:
    from .answers import Ending, Failure, Group, Line
    from .seen_call import SeenCall

_MOST_SHOWN: Final = 60
_OTHERS: Final = "others"


class _Top:
    """Keeps the calls with the most of something."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[tuple[float, float], int, Line]] = []
        self._number = 0

    def add(self, rank: tuple[float, float], values: Line) -> None:
        """Keep a call if it is among them; of equal ones the first."""
        heap = self._heap
        self._number -= 1
        if len(heap) < self._most:
            heappush(heap, (rank, self._number, values))
        elif heap and rank > heap[0][0]:
            heappushpop(heap, (rank, self._number, values))

    def lines(self) -> tuple[Line, ...]:
        """Return them, that with the most first."""
        ranked = sorted(self._heap, key=lambda each: each[:2], reverse=True)
        return tuple(cleaned(values) for *_, values in ranked)


class Counting:
    """Counts calls for a report.

    Args:
        by: What groups have in common.
        top: How many examples are kept of each kind.
    """

    def __init__(self, by: By, top: int) -> None:
        self._by = by
        self._calls = self._successes = self._at_once = self._rescued = 0.0
        self._attempts = self._extra = 0.0
        self._retries = self._hedges = self._resends = self._resumes = 0.0
        self._times = Times()
        self._cancelled_times = Times()
        self._groups: Table[str, GroupTally] = Table(GroupTally)
        self._endings: Table[tuple[str | None, str], EndingTally] = Table(EndingTally)
        self._failures: Table[tuple[str, str], FailureTally] = Table(FailureTally)
        self._steps = Steps()
        self._evidence = Evidence()
        self._slowest = _Top(top)
        self._most_attempts = _Top(top)

    @property
    def was_full(self) -> bool:
        """Whether there were more groups than can be told apart."""
        return self._groups.was_full

    def add(self, call: SeenCall, started: float | None, weight: float) -> None:
        """Count a call that was not made inside another one.

        Args:
            call: The call.
            started: When it began, in seconds since 1970, if that is known.
            weight: How many calls it stands for.
        """
        values = call.values
        parts = spending(call)
        self._add_to_summary(call, weight)
        times = self._cancelled_times if is_cancelled(values) else self._times
        times.add(call, parts, weight)
        for key, unit in units(call, self._by):
            spent = parts if unit is call else spending(unit)
            group = self._groups.at(key)
            group.add(unit, weight)
            group.times.add(unit, spent, weight)
        if not call.is_success:
            ending = stop_reason(values), outcome_of(values)
            self._endings.at(ending).add(values, weight)
        self._add_failures(call, weight)
        self._evidence.add(call, weight)
        if started is not None:
            self._steps.add(call, started, weight)
        duration = call.duration or 0.0
        self._slowest.add((duration, 0.0), values)
        if call.extra:
            self._most_attempts.add((float(call.extra), duration), values)

    def _add_to_summary(self, call: SeenCall, weight: float) -> None:
        self._calls += weight
        self._successes += weight * call.is_success
        self._at_once += weight * call.is_success_at_once
        self._rescued += weight * call.is_rescued
        self._attempts += weight * len(call.attempts)
        self._extra += weight * call.extra
        self._retries += weight * call.retries
        self._hedges += weight * call.hedges
        self._resends += weight * call.resends
        self._resumes += weight * call.resumes

    def _add_failures(self, call: SeenCall, weight: float) -> None:
        is_refused_by_budget = stop_reason(call.values) == "limiter"
        for attempt in call.attempts:
            for inside in attempt.calls:
                self._add_failures(inside, weight)
            if attempt.is_success or attempt.is_superseded:
                continue
            values = attempt.values
            key = where(values) or where(call.values), outcome_of(values)
            self._failures.at(key).add(
                attempt,
                weight,
                is_refused=is_refused(values),
                is_refused_by_budget=is_refused_by_budget and not attempt.is_retried,
            )

    def answers(self, read: Input) -> Answers:
        """Return all answers.

        Args:
            read: What was read.
        """
        findings = Findings(self._evidence, self._times, self._steps.unasked())
        times = Times()
        times.merge(self._times)
        times.merge(self._cancelled_times)
        return Answers(
            v=1,
            input=read,
            summary=self._summary(times),
            groups=self._shown_groups(),
            time=_time(times),
            endings=self._shown_endings(),
            failures=self._shown_failures(),
            timeline=self._steps.answer(),
            examples=Examples(self._slowest.lines(), self._most_attempts.lines()),
            hints=hints(findings),
        )

    def _summary(self, times: Times) -> Summary:
        calls = self._calls
        return Summary(
            whole(calls),
            whole(self._successes),
            ratio(self._successes, calls),
            whole(self._at_once),
            ratio(self._at_once, calls),
            whole(self._rescued),
            whole(self._attempts),
            ratio(self._attempts, calls),
            whole(self._extra),
            ratio(self._extra, calls),
            whole(self._retries),
            whole(self._hedges),
            whole(self._resends),
            whole(self._resumes),
            times.quantiles(),
        )

    def _shown_groups(self) -> tuple[Group, ...]:
        table = self._groups
        groups = [group.answer(key) for key, group in table.largest(_MOST_SHOWN)]
        if table.merged:
            groups.append(table.others.answer(_OTHERS, table.merged))
        return tuple(groups)

    def _shown_endings(self) -> tuple[Ending, ...]:
        table = self._endings
        endings = []
        for (reason, outcome), ending in table.largest(_MOST_SHOWN):
            example = None if ending.example is None else cleaned(ending.example)
            endings.append(ending.answer(reason, outcome, example))
        if table.merged:
            endings.append(table.others.answer(None, _OTHERS, None))
        return tuple(endings)

    def _shown_failures(self) -> tuple[Failure, ...]:
        table = self._failures
        failures = [failure.answer(*key) for key, failure in table.largest(_MOST_SHOWN)]
        if table.merged:
            failures.append(table.others.answer(_OTHERS, _OTHERS))
        return tuple(failures)


def _time(times: Times) -> Time:
    parts = times.parts()
    calls, least, _ = times.slowest()
    said = "no call has a known duration"
    if least is not None:
        which = f"{counted(whole(calls), 'call')}, from {seconds(least)} on"
        said = f"the slowest 5 % ({which}) spent {shares_in_words(parts)}"
    return Time(
        sum(part.seconds for part in parts),
        parts,
        whole(calls),
        least,
        sum(part.slowest_seconds for part in parts),
        said,
    )
