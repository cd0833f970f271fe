"""Write calls as trace events of Chrome, which Perfetto opens: all on one time axis.

A lane, a thread to Perfetto, has calls one after the other, each with its attempts, its
waits and the calls inside. What overlaps something else on the lane, as a hedge does,
lies on a lane beside it: on one lane slices may only be nested.
"""

from __future__ import annotations

from bisect import bisect, insort
from heapq import heappop, heappush
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from .call_writer import CallWriter, encode
from .plain_log import PlainLog
from .trace_slices import Kind, Slice, slice_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TextIO

_SLACK: Final = 10
"""By how many microseconds times may overlap because they were rounded."""


class TraceWriter(CallWriter):
    """Writes a trace: the events to a temporary file, and all of it at the end.

    Of each call it keeps where its events are and on how many lanes they lie, about 200
    bytes. It skips calls that are nested too deep, and those of which nobody knows when
    they began.

    Args:
        file: Where to write. All that is written is ASCII.

    >>> import io, json
    >>> file = io.StringIO()
    >>> with TraceWriter(file) as trace:
    ...     trace.add({"request_started_at": "2026-11-26T12:00:00+00:00"})
    >>> [event["ph"] for event in json.loads(file.getvalue())["traceEvents"]]
    ['M', 'M', 'M', 'X']
    """

    def __init__(self, file: TextIO) -> None:
        super().__init__(file)
        self._calls: list[_Call] = []
        self._size = 0

    def add(self, call: Mapping[str, object]) -> None:
        """Add a call.

        Args:
            call: Values of :meth:`.RequestLog.to_dict`, or those of a line.
        """
        lanes = _Lanes()
        try:
            whole = slice_of(PlainLog(call))
            if whole is not None:
                lanes.place(whole, 0)
        except RecursionError:
            whole = None
        if whole is None:
            self.skipped += 1
            return
        lines = (f"{lane}\t{_event(part)}\n" for lane, part in lanes.placed)
        events = "".join(lines).encode()
        self._aside.write(events)
        start = min(part.start for _, part in lanes.placed)
        end = max(part.end for _, part in lanes.placed)
        self._calls.append(_Call(start, end, lanes.number, self._size, len(events)))
        self._size += len(events)

    def _end(self) -> None:
        self._file.write('{"displayTimeUnit":"ms","traceEvents":[')
        separator = "\n"
        for event in self._trace():
            self._file.write(separator + event)
            separator = ",\n"
        self._file.write("\n]}\n")

    def _trace(self) -> Iterator[str]:
        self._calls.sort()
        lanes = [*_lanes(self._calls)]
        width = [0] * (max(lanes, default=-1) + 1)
        for call, lane in zip(self._calls, lanes, strict=True):
            width[lane] = max(width[lane], call.lanes)
        first = [0, *accumulate(width)]
        yield from _names(width)
        for call, lane in zip(self._calls, lanes, strict=True):
            self._aside.seek(call.position)
            for line in self._aside.read(call.length).decode().splitlines():
                beside, _, event = line.partition("\t")
                thread = first[lane] + int(beside) + 1
                yield f'{{"pid":1,"tid":{thread},{event[1:]}'


class _Call(NamedTuple):
    """Where the events of a call are: in time, on lanes, and in the file."""

    start: int
    end: int
    lanes: int
    position: int
    length: int


class _Lanes:
    """Finds a lane for each slice of a call: its own, which is 0, or one beside it."""

    def __init__(self) -> None:
        self.placed: list[tuple[int, Slice]] = []
        """All slices with their lanes; what is inside another one comes after it."""

        self._beside: list[list[tuple[int, int]]] = []

    @property
    def number(self) -> int:
        """How many lanes there are."""
        return 1 + len(self._beside)

    def place(self, whole: Slice, lane: int) -> None:
        """Put a slice on a lane where there is room, and find room for its parts."""
        self.placed.append((lane, whole))
        free = whole.start
        for part in sorted(whole.inside, key=_times):
            is_cut = part.kind in {Kind.WAIT, Kind.PART}
            fits = free - _SLACK <= part.start and part.end <= whole.end + _SLACK
            if part.kind is Kind.HEDGE or not (fits or is_cut):
                self.place(part, self._lane_beside(part))
                continue
            part.start = min(max(part.start, free), whole.end)
            part.end = min(max(part.end, part.start), whole.end)
            if part.start < part.end or not is_cut:
                self.place(part, lane)
                free = part.end

    def _lane_beside(self, part: Slice) -> int:
        for number, taken in enumerate(self._beside, 1):
            if _is_free(taken, *_times(part)):
                insort(taken, _times(part))
                return number
        self._beside.append([_times(part)])
        return len(self._beside)


def _times(part: Slice) -> tuple[int, int]:
    return part.start, part.end


def _is_free(taken: list[tuple[int, int]], start: int, end: int) -> bool:
    """Say whether a time touches none of those, which are in order, but at its ends."""
    index = bisect(taken, (start, end))
    before, after = taken[max(0, index - 1) : index], taken[index : index + 1]
    return all(stop <= start for _, stop in before) and all(
        end <= begin for begin, _ in after
    )


def _lanes(calls: list[_Call]) -> Iterator[int]:
    """Give each call the first lane that is free when it begins."""
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    for call in calls:
        while busy and busy[0][0] <= call.start:
            heappush(free, heappop(busy)[1])
        lane = heappop(free) if free else len(busy)
        heappush(busy, (call.end, lane))
        yield lane


def _event(part: Slice) -> str:
    """Describe a slice, without the lane that it gets in the end."""
    return encode(
        {
            "name": part.name,
            "cat": part.kind,
            "ph": "X",
            "ts": part.start,
            "dur": part.end - part.start,
            "args": part.facts,
        }
    )


def _names(widths: list[int]) -> Iterator[str]:
    """Name the lanes, and say in which order they stand."""
    yield encode(_metadata(0, "process_name", name="aioretry_smithy"))
    names = (
        f"calls {lane}{f', beside {beside}' if beside else ''}"
        for lane, width in enumerate(widths, 1)
        for beside in range(width)
    )
    for thread, name in enumerate(names, 1):
        yield encode(_metadata(thread, "thread_name", name=name))
        yield encode(_metadata(thread, "thread_sort_index", sort_index=thread))


def _metadata(thread: int, about: str, /, **values: object) -> dict[str, object]:
    return {"pid": 1, "tid": thread, "ph": "M", "name": about, "args": values}
