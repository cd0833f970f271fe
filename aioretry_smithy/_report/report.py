"""Read saved calls, and report on the selected outermost calls."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from os import PathLike
from typing import Any, Final

from .. import _checks as check
from .._errors import bad_argument
from .._log.request_log import RequestLog
from .._log.saved_log import cleaned, dictionaries
from .._text.printable import encodable
from . import fields, tally
from .answers import Answers, Ending, Examples, FailureRow, GroupRow, Input, Line
from .document import blocks, plain_text
from .hints import Evidence, Findings, hints
from .page import to_frame, to_html
from .seen_call import SeenCall, TooDeepError, spending
from .selection import KEYS, By, Selection, units
from .sources import LineSource, Skipped, decode

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
        self._number -= 1
        heappush(self._heap, (rank, self._number, values))
        if len(self._heap) > self._most:
            heappop(self._heap)

    def lines(self) -> list[Line]:
        """Return the kept lines, highest rank first."""
        ranked = sorted(self._heap, key=lambda each: each[:2], reverse=True)
        return [cleaned(values) for *_, values in ranked]


class Counting:
    """Counts calls for a report.

    Args:
        by: What groups have in common.
        top: How many examples are kept of each kind.
    """

    def __init__(self, by: By, top: int) -> None:
        self._by = by
        self._summary = tally.SummaryTally()
        self._times = tally.Times()
        self._cancelled_times = tally.Times()
        self._groups = fields.CountTable[str, tally.GroupTally](tally.GroupTally)
        self._endings = fields.CountTable[tuple[str | None, str], tally.EndingTally](
            tally.EndingTally
        )
        self._failures = fields.CountTable[tuple[str, str], tally.FailureTally](
            tally.FailureTally
        )
        self._steps = tally.Steps()
        self._evidence = Evidence()
        self._slowest = _Top(top)
        self._most_attempts = _Top(top)

    @property
    def was_full(self) -> bool:
        """Whether too many groups appeared for separate counts."""
        return self._groups.merged > 0

    def add(self, call: SeenCall, started: float | None, weight: float) -> None:
        """Count an outermost call.

        Args:
            call: The call.
            started: When it began, in seconds since 1970, if that is known.
            weight: How many calls it stands for.
        """
        values = call.values
        parts = spending(call)
        self._summary.add(call, weight)
        times = self._cancelled_times if fields.is_cancelled(values) else self._times
        times.add(call, parts, weight)
        for key, unit in units(call, self._by):
            spent = parts if unit is call else spending(unit)
            group = self._groups.at(key)
            group.add(unit, weight)
            group.times.add(unit, spent, weight)
        if not call.is_success:
            ending = tally.stop_reason(values), fields.outcome_of(values)
            ended = self._endings.at(ending)
            ended.calls += weight
            ended.example = ended.example or values
        self._add_failures(call, weight)
        self._evidence.add(call, weight)
        if started is not None:
            self._steps.add(call, started, weight)
        duration = call.duration or 0.0
        self._slowest.add((duration, 0.0), values)
        if call.extra:
            self._most_attempts.add((float(call.extra), duration), values)

    def _add_failures(self, call: SeenCall, weight: float) -> None:
        is_refused_by_budget = tally.stop_reason(call.values) == "limiter"
        for inside in call.inside:
            self._add_failures(inside, weight)
        for attempt in call.attempts:
            if attempt.is_success or attempt.is_superseded:
                continue
            values = attempt.values
            key = (
                fields.where(values) or fields.where(call.values),
                fields.outcome_of(values),
            )
            failed = self._failures.at(key)
            failed.attempts += weight
            failed.sent += weight * bool(values.get("sent"))
            failed.not_sent += weight * (not values.get("sent"))
            failed.retried += weight * attempt.is_retried
            failed.refused += weight * fields.is_refused(values)
            if is_refused_by_budget and not attempt.is_retried:
                failed.refused_by_budget += weight

    def answers(self, read: Input) -> Answers:
        """Return all answers.

        Args:
            read: What was read.
        """
        findings = Findings(self._evidence, self._times, self._steps.unasked())
        times = tally.Times()
        times += self._times
        times += self._cancelled_times
        return Answers(
            v=1,
            input=read,
            summary=self._summary.answer(times),
            groups=[*self._shown_groups()],
            time=times.answer(),
            endings=[*self._shown_endings()],
            failures=[*self._shown_failures()],
            timeline=self._steps.answer(),
            examples=Examples(self._slowest.lines(), self._most_attempts.lines()),
            hints=hints(findings),
        )

    def _shown_groups(self) -> Iterator[GroupRow]:
        table = self._groups
        for key, group in table.shown(_MOST_SHOWN, _OTHERS):
            yield group.answer(key, table.merged if group is table.others else 0)

    def _shown_endings(self) -> Iterator[Ending]:
        for key, ended in self._endings.shown(_MOST_SHOWN, (None, _OTHERS)):
            example = ended.example and cleaned(ended.example)
            yield Ending(*key, fields.whole(ended.calls), example)

    def _shown_failures(self) -> Iterator[FailureRow]:
        for (place, outcome), failed in self._failures.shown(
            _MOST_SHOWN, (_OTHERS, _OTHERS)
        ):
            yield FailureRow(place, outcome, **failed.counts())


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
        self._read = Input(by)
        self._newer = 0
        self._times = _NEVER

    def note_inside(self, values: Line) -> None:
        """Remember the calls inside a call, lines of which come before its own."""
        found = [values]
        while found:
            values = found.pop()
            for part in (values, *dictionaries(values, "children")):
                calls = dictionaries(part, "calls") if "calls" in part else ()
                found += calls
                for known in (fields.text(call, "id") for call in calls):
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
            self._read.lines += 1
            values = decode(line) if isinstance(line, bytes) else line
            if isinstance(values, Skipped):
                self._skip(values)
            else:
                self.add(values)

    def add_calls(self, calls: Sequence[Line]) -> None:
        """Count calls, some of which may be nested in others."""
        for values in calls:
            self.note_inside(values)
        for values in calls:
            self._read.lines += 1
            self.add(values)

    def add(self, values: Line) -> None:
        """Count a call, unless nested in a counted call."""
        known = fields.text(values, "id")
        if known is not None and known in self._inside:
            self._read.inside += 1
            return
        started = fields.moment(values)
        if not self._selection.has_moment(started):
            self._read.left_out += 1
            return
        if not self._add_call(values, started):
            return
        self._read.calls += 1
        self._read.without_id += known is None
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
            self._read.left_out += 1
            return False
        self._counting.add(call, started, self._weight(values))
        return True

    def _skip(self, reason: Skipped) -> None:
        self._skipped[reason] = self._skipped.get(reason, 0) + 1

    def _weight(self, values: Line) -> float:
        rate = fields.number(values, "sampling_rate")
        if rate is not None and _LEAST_RATE <= rate < 1:
            self._read.sampled += 1
            return 1 / rate
        self._read.sampled_by_function += values.get("sampled") is True
        return 1.0

    def _note(self, values: Line, started: float | None) -> None:
        if values.get("is_complete") is not True:
            has_body = (
                fields.status_of(values) is not None
                and fields.cause_type(values) is None
            )
            self._read.unknown_bodies += has_body
        version = fields.number(values, "v")
        self._newer += version is not None and version > 1
        if started is not None:
            ended = started + (fields.number(values, "duration") or 0.0)
            self._times = min(started, self._times[0]), max(ended, self._times[1])

    def answers(self, sources: Sequence[LineSource] = ()) -> Answers:
        """Return all answers.

        Args:
            sources: The files that were read.
        """
        read = self._read
        read.sources = [encodable(source.name) for source in sources]
        read.skipped = {str(key): number for key, number in self._skipped.items()}
        if self._times is not _NEVER:
            read.started_at, read.ended_at = map(tally.utc, self._times)
        read.warnings = [*self._warnings(sources)]
        return self._counting.answers(read)

    def _warnings(self, sources: Sequence[LineSource]) -> Iterator[str]:
        said = (source.warning for source in sources if source.warning is not None)
        yield from map(encodable, said)
        if self._read.sampled_by_function:
            yield (
                f"{self._read.sampled_by_function:,} calls were chosen by a function,"
                " and stand for an unknown number of others"
            )
        if self._counting.was_full:
            yield "there are too many groups: calls of rare ones may be in the others"
        if self._newer:
            yield f"{self._newer:,} lines are of a newer version than this one"


def _is_under_way(values: Line) -> bool:
    return (
        values.get("duration") is None
        and values.get("response_status") is None
        and fields.cause_type(values) is None
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


_TOP: Final = 10
_LOGS: Final = "a list of RequestLog objects"


class Report:
    """A report: success of calls, where their time went, and hints.

    Made by :meth:`of`. Credentials are hidden in all views, as in those of the logs.
    """

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    @staticmethod
    def of(logs: Iterable[RequestLog], *, by: By = "path", top: int = _TOP) -> Report:
        """Look at the logs of calls.

        Args:
            logs: Such as :func:`capture_logs` collects. Calls that are under way, or
                that another one of them made, are left out.
            by: What the calls of a group have in common: ``"host"``, ``"method"``,
                ``"path"``, ``"endpoint"`` or ``"name"``.
            top: How many of the slowest calls, and of those with most attempts, are
                shown.

        Returns:
            The report; without any call, one of zeros.

        Raises:
            ValueError: An argument is not as described.

        >>> report = Report.of([])
        >>> report.to_dict()["summary"]["calls"]
        0
        """
        if by not in KEYS:
            raise bad_argument("by", by, f"one of {', '.join(KEYS)}")
        check.integer("top", top, 0)
        if isinstance(logs, str | bytes | PathLike):
            expected = f"{_LOGS}; aioretry-smithy report FILE reads files"
            raise bad_argument("logs", logs, expected)
        if not isinstance(logs, Iterable):
            raise bad_argument("logs", logs, _LOGS)
        reading = Reading(by, top, Selection())
        reading.add_calls([_values_of(log) for log in logs])
        return Report(reading.answers())

    def render(self) -> str:
        """Write the answers as plain text, with control characters escaped."""
        return plain_text(blocks(self.answers)).strip()

    def to_html(self) -> str:
        """Write the answers as a page with pictures, complete in one file.

        It has no script and loads nothing. Whatever the logs say is text in it.
        """
        return to_html(self.answers)

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        return to_frame(self.to_html())

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as JSON values: the keys of :ref:`report-keys`."""
        return self.answers.to_dict()

    def __repr__(self) -> str:
        return f"<Report of {self.answers.input.calls} calls>"


def _values_of(log: RequestLog) -> dict[str, object]:
    if not isinstance(log, RequestLog):
        raise bad_argument("logs", log, "RequestLog objects")
    return log.to_dict()
