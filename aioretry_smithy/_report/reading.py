"""Read saved calls, and count the selected outermost calls."""

from __future__ import annotations

import math
import re
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, Final

from .._log.saved_log import cleaned, dictionaries
from .._text.printable import encodable
from .answers import (
    Answers,
    Examples,
    Input,
    Summary,
    Time,
    counted,
    seconds,
    shares_in_words,
)
from .fields import (
    CountTable,
    cause_type,
    is_cancelled,
    is_refused,
    moment,
    number,
    outcome_of,
    ratio,
    status_of,
    text,
    where,
    whole,
)
from .hints import Evidence, Findings, hints
from .seen_call import SeenCall, TooDeepError, spending
from .selection import By, Selection, units
from .sources import LineSource, Skipped, decode
from .tally import EndingTally, FailureTally, GroupTally, Steps, Times, stop_reason, utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .answers import Ending, FailureRow, GroupRow, Line


_MOST_SHOWN: Final = 60
_OTHERS: Final = "others"


class _Top:
    """Keeps the calls with the most of something."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[tuple[float, float], int, Line]] = []
        self._number = 0

    def add(self, rank: tuple[float, float], values: Line) -> None:
        """Keep a call if its rank is among the highest; the first wins a tie."""
        heap = self._heap
        self._number -= 1
        if len(heap) < self._most:
            heappush(heap, (rank, self._number, values))
        elif heap and rank > heap[0][0]:
            heappushpop(heap, (rank, self._number, values))

    def lines(self) -> tuple[Line, ...]:
        """Return the kept lines, highest rank first."""
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
        self._groups: CountTable[str, GroupTally] = CountTable(GroupTally)
        self._endings: CountTable[tuple[str | None, str], EndingTally] = CountTable(
            EndingTally
        )
        self._failures: CountTable[tuple[str, str], FailureTally] = CountTable(
            FailureTally
        )
        self._steps = Steps()
        self._evidence = Evidence()
        self._slowest = _Top(top)
        self._most_attempts = _Top(top)

    @property
    def was_full(self) -> bool:
        """Whether too many groups appeared for separate counts."""
        return self._groups.was_full

    def add(self, call: SeenCall, started: float | None, weight: float) -> None:
        """Count an outermost call.

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
        times += self._times
        times += self._cancelled_times
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

    def _shown_groups(self) -> tuple[GroupRow, ...]:
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

    def _shown_failures(self) -> tuple[FailureRow, ...]:
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


_HAS_CALLS: Final = re.compile(rb'calls\\?": ?\[ ?\{')
_LEAST_RATE: Final = 1e-6
_NEVER: Final = (math.inf, -math.inf)


class Reading:
    """Counts calls, and what could not be counted.

    Args:
        by: What groups have in common.
        top: How many examples are kept of each kind.
        selection: The calls that are wanted.
        listeners: Called with the values of each call that is counted.
    """

    def __init__(
        self,
        by: By,
        top: int,
        selection: Selection,
        listeners: Sequence[Callable[[Line], None]] = (),
    ) -> None:
        self._by = by
        self._selection = selection
        self._listeners = listeners
        self._counting = Counting(by, top)
        self._inside: set[str] = set()
        self._skipped: dict[str, int] = {}
        self._lines = self._counted = self._calls_inside = self._left_out = 0
        self._without_id = self._unknown_bodies = self._dropped = 0
        self._sampled = self._sampled_by_function = self._newer = 0
        self._times = _NEVER

    def note_inside(self, values: Line) -> None:
        """Remember the calls inside a call, lines of which come before its own."""
        found = [values]
        while found:
            values = found.pop()
            for part in (values, *dictionaries(values, "children")):
                calls = dictionaries(part, "calls") if "calls" in part else ()
                found += calls
                for known in (text(call, "id") for call in calls):
                    if known is not None:
                        self._inside.add(known)

    def note_lines_inside(self, lines: Iterable[bytes | Skipped]) -> None:
        """Remember the calls inside of all calls in lines."""
        for line in lines:
            if isinstance(line, bytes) and _HAS_CALLS.search(line):
                values = decode(line)
                if not isinstance(values, Skipped):
                    self.note_inside(values)

    def add_lines(self, lines: Iterable[bytes | Skipped]) -> None:
        """Count the calls in lines."""
        for line in lines:
            self._lines += 1
            values = decode(line) if isinstance(line, bytes) else line
            if isinstance(values, Skipped):
                self._skip(values)
            else:
                self.add(values)

    def add(self, values: Line) -> None:
        """Count a call, unless nested in a counted call."""
        known = text(values, "id")
        if known is not None and known in self._inside:
            self._calls_inside += 1
            return
        started = moment(values)
        if not self._selection.has_moment(started):
            self._left_out += 1
            return
        if not self._add_call(values, started):
            return
        self._counted += 1
        self._without_id += known is None
        self._note(values, started)
        for listener in self._listeners:
            listener(values)

    def _add_call(self, values: Line, started: float | None) -> bool:
        """Count a call that is finished and matches; say whether it does."""
        try:
            call = SeenCall(values)
        except (RecursionError, TooDeepError):
            self._skip(Skipped.TOO_DEEP)
            return False
        if _is_under_way(values):
            self._skip(Skipped.UNDER_WAY)
            return False
        if not self._selection.matches_all(call):
            self._left_out += 1
            return False
        self._counting.add(call, started, self._weight(values))
        return True

    def count_line(self) -> None:
        """Count a line whose call is added."""
        self._lines += 1

    def _skip(self, reason: Skipped) -> None:
        self._skipped[reason] = self._skipped.get(reason, 0) + 1

    def _weight(self, values: Line) -> float:
        rate = number(values, "sampling_rate")
        if rate is not None and _LEAST_RATE <= rate < 1:
            self._sampled += 1
            return 1 / rate
        self._sampled_by_function += values.get("sampled") is True
        return 1.0

    def _note(self, values: Line, started: float | None) -> None:
        if values.get("is_complete") is not True:
            has_body = status_of(values) is not None and cause_type(values) is None
            self._unknown_bodies += has_body
        version = number(values, "v")
        self._newer += version is not None and version > 1
        if started is not None:
            ended = started + (number(values, "duration") or 0.0)
            self._times = min(started, self._times[0]), max(ended, self._times[1])

    def answers(self, sources: Sequence[LineSource] = ()) -> Answers:
        """Return all answers.

        Args:
            sources: The files that were read.
        """
        read = Input(
            sources=tuple(encodable(source.name) for source in sources),
            by=self._by,
            lines=self._lines,
            calls=self._counted,
            inside=self._calls_inside,
            left_out=self._left_out,
            skipped={str(key): number for key, number in self._skipped.items()},
            without_id=self._without_id,
            unknown_bodies=self._unknown_bodies,
            sampled=self._sampled,
            sampled_by_function=self._sampled_by_function,
            started_at=None if self._times is _NEVER else utc(self._times[0]),
            ended_at=None if self._times is _NEVER else utc(self._times[1]),
            warnings=tuple(self._warnings(sources)),
        )
        return self._counting.answers(read)

    def _warnings(self, sources: Sequence[LineSource]) -> Iterator[str]:
        said = (source.warning for source in sources if source.warning is not None)
        yield from map(encodable, said)
        if self._sampled_by_function:
            yield (
                f"{self._sampled_by_function:,} calls were chosen by a function, and"
                " stand for an unknown number of others"
            )
        if self._counting.was_full:
            yield "there are too many groups: calls of rare ones may be in the others"
        if self._newer:
            yield f"{self._newer:,} lines are of a newer version than this one"


def _is_under_way(values: Line) -> bool:
    return (
        values.get("duration") is None
        and values.get("response_status") is None
        and cause_type(values) is None
        and values.get("is_success") is not True
    )


def read(
    sources: Sequence[LineSource], reading: Reading, progress: Callable[[float], None]
) -> Answers:
    """Read files; a second time, without nested calls, if there are any.

    Args:
        sources: The files.
        reading: What counts.
        progress: Called with the part that is done, from 0 to 1.

    Raises:
        UnreadableError: A file cannot be read.
    """
    total = 2 * sum(source.size for source in sources) or 1
    done = 0

    def note(size: int) -> None:
        nonlocal done
        done += size
        progress(min(1.0, done / total))

    for source in sources:
        reading.note_lines_inside(source.lines(note))
    for source in sources:
        reading.add_lines(source.lines(note))
    progress(1.0)
    return reading.answers(sources)
