"""Read calls, and count those that are wanted and no part of another."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from .._text import encodable
from .answers import Answers, Input
from .counting import Counting
from .decoding import Skipped, decode
from .outcome import cause_type, status_of
from .seen_call import SeenCall, TooDeepError
from .steps import utc
from .values import dictionaries, moment, number, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .answers import Line
    from .selection import Selection
    from .sources import Source
    from .units import By

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

    def note_lines_inside(self, lines: Iterable[bytes]) -> None:
        """Remember the calls inside of all calls in lines."""
        for line in lines:
            if _HAS_CALLS.search(line):
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
        """Count a call, unless it is a part of another one."""
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

    def answers(self, sources: Sequence[Source] = ()) -> Answers:
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

    def _warnings(self, sources: Sequence[Source]) -> Iterator[str]:
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
    sources: Sequence[Source], reading: Reading, progress: Callable[[float], None]
) -> Answers:
    """Read files, where there are calls inside others twice: to know these before.

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
        reading.note_lines_inside(source.lines_with(b"calls", note))
    for source in sources:
        reading.add_lines(source.lines(note))
    progress(1.0)
    return reading.answers(sources)
