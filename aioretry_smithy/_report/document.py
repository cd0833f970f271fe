"""Lay out the answers of a report as text: headings, lines, tables and trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from .._log.saved_log import SavedLog
from .._log.tree import cells
from .._text.printable import printable
from .answers import (
    NOTHING,
    count,
    counted,
    input_in_words,
    part,
    per_call,
    reason,
    requests_without_retries,
    retries_in_words,
    seconds,
    share,
    shares_in_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .._log.request_log import RequestLog
    from .answers import Answers, CallsByTime, GroupRow, Line


_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_NOTHING: Final = " "


def sparkline(values: Sequence[float | None]) -> str:
    """Draw a character for each number, None as a blank.

    >>> sparkline([0, 1, None, 8])
    '▁▂ █'
    """
    largest = max((value for value in values if value is not None), default=0.0)
    scale = (len(_BLOCKS) - 1) / largest if largest else 0.0
    return "".join(
        _NOTHING if value is None else _BLOCKS[int(value * scale + 0.5)]
        for value in values
    )


def per_cell(values: int, cells: int) -> int:
    """Return how many of so many values share a cell.

    >>> per_cell(60, 60), per_cell(84, 60)
    (1, 2)
    """
    return max(1, -(-values // cells))


def condensed(
    values: Sequence[float | None], cells: int, *, is_sum: bool
) -> list[float | None]:
    """Reduce values to *cells* cells, by the sum or the maximum of neighbours.

    >>> condensed([1, 2, None, 4, None], 3, is_sum=True)
    [3, 4, None]
    """
    each = per_cell(len(values), cells)
    parts = (values[n : n + each] for n in range(0, len(values), each))
    known = ([value for value in part if value is not None] for part in parts)
    merge = sum if is_sum else max
    return [merge(part) if part else None for part in known]


_CELLS: Final = 60
_MOST_REASONS: Final = 3
_MOST_SAID: Final = 10
_MOST_TREES: Final = 10
_WIDEST: Final = 60
"""Characters of a text that came from a line."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The subject of the blocks that follow."""

    title: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, of which the first has the names of the columns."""

    rows: Sequence[tuple[str, ...]]
    texts: tuple[str, ...] = ()
    """The columns of texts; all others have numbers."""


Block: TypeAlias = "Heading | Table | RequestLog | SavedLog | str"
"""A part of a document; a text is a line, a log a tree."""


def blocks(answers: Answers) -> Iterator[Block]:
    """Yield the parts, the most important first."""
    yield from _title(answers)
    yield from _hints(answers)
    yield from _summary(answers)
    yield from _groups(answers)
    yield from _time(answers)
    yield from _endings(answers)
    yield from _failures(answers)
    yield from _timeline(answers.timeline)
    yield from _examples(answers)


def _title(answers: Answers) -> Iterator[Block]:
    read = answers.input
    calls = f"Report on {counted(answers.summary.calls, 'call')}"
    when = "" if read.started_at is None else f"{read.started_at} to {read.ended_at}"
    yield Heading(calls, when)
    yield from input_in_words(read)


def _summary(answers: Answers) -> Iterator[Block]:
    summary = answers.summary
    yield Heading("How it went")
    yield Table(
        (
            ("", "without retries", "with"),
            (
                "success",
                share(summary.success_without_retries),
                share(summary.success),
            ),
            (
                "requests per call",
                per_call(requests_without_retries(summary)),
                per_call(1 + summary.extra_requests_per_call),
            ),
        )
    )
    took = summary.duration
    yield (
        f"duration: p50 {seconds(took.p50)}, p95 {seconds(took.p95)},"
        f" p99 {seconds(took.p99)}, max {seconds(took.max)}"
    )
    retries = retries_in_words(summary)
    if retries is not None:
        yield retries
    yield answers.time.said


def _groups(answers: Answers) -> Iterator[Block]:
    by = answers.input.by
    head = f"{by} calls success attempts/call p50 p99 waited".split()
    yield Heading(f"By {by}")
    yield Table((tuple(head), *map(_row, answers.groups)), (by,))
    if len(answers.groups) < 2:
        # It is as all calls are.
        return
    yield ""
    for group in answers.groups[:_MOST_SAID]:
        stops = _reasons(group.stop_reasons)
        slow = f"{_key(group)}: the slowest 5 % spent {shares_in_words(group.slowest)}"
        yield f"{slow}; stopped: {stops}" if stops else slow


def _key(group: GroupRow) -> str:
    return f"{group.merged:,} others" if group.merged else shown(group.key) or NOTHING


def _row(group: GroupRow) -> tuple[str, ...]:
    return (
        _key(group),
        count(group.calls),
        share(group.success),
        per_call(group.attempts_per_call),
        seconds(group.duration.p50),
        seconds(group.duration.p99),
        seconds(group.waited),
    )


def _reasons(reasons: Mapping[str, float]) -> str:
    return ", ".join(
        f"{shown(reason(name))} {count(calls)}"
        for name, calls in [*reasons.items()][:_MOST_REASONS]
    )


def _time(answers: Answers) -> Iterator[Block]:
    time = answers.time
    yield Heading("Where the time went", f"{seconds(time.seconds)} in all")
    rows = [
        (
            part(each),
            seconds(each.seconds),
            share(each.share),
            seconds(each.slowest_seconds),
            share(each.slowest_share),
        )
        for each in time.parts
    ]
    head = ("part", "all calls", "of it", "slowest 5 %", "of that")
    yield Table((head, *rows), ("part",))


def _endings(answers: Answers) -> Iterator[Block]:
    yield Heading("Calls without success", "" if answers.endings else "none")
    if not answers.endings:
        return
    rows = [
        (shown(reason(each.stop_reason)), shown(each.outcome), count(each.calls))
        for each in answers.endings
    ]
    texts = ("why it stopped", "outcome")
    yield Table(((*texts, "calls"), *rows), texts)
    yield from map(SavedLog, drawn_with_endings(answers))


def _failures(answers: Answers) -> Iterator[Block]:
    yield Heading("What failed", "" if answers.failures else "nothing")
    if not answers.failures:
        return
    rows = [
        (
            shown(each.where),
            shown(each.outcome),
            *map(
                count,
                (
                    each.attempts,
                    each.not_sent,
                    each.retried,
                    each.refused_by_budget,
                    each.refused,
                ),
            ),
        )
        for each in answers.failures
    ]
    texts = ("where", "outcome")
    numbers = ("attempts", "unsent", "retried", "no budget", "refused")
    yield Table(((*texts, *numbers), *rows), texts)


def _timeline(timeline: CallsByTime) -> Iterator[Block]:
    if not timeline.moments:
        return
    worst = max(timeline.moments, key=lambda moment: moment.failures)
    each = per_cell(len(timeline.series("calls")), _CELLS)
    drawn = "" if each == 1 else f", {each} to a character"
    yield Heading("When", f"{timeline.said}{drawn}")
    for name, is_sum in (("calls", 1), ("failures", 1), ("retries", 1), ("p99", 0)):
        values = timeline.series(name)
        most = max((value for value in values if value is not None), default=0.0)
        cells = sparkline(condensed(values, _CELLS, is_sum=bool(is_sum)))
        said = count(most) if is_sum else seconds(most)
        # A terminal of less than 80 columns breaks the picture, and not the number.
        yield f"{name:9}≤ {said:8} {cells}".rstrip()
    if worst.failures:
        failed = f"{count(worst.failures)} of {counted(worst.calls, 'call')}"
        yield f"most failures: {failed} from {worst.started_at} on"


def drawn_with_endings(answers: Answers) -> list[Line]:
    """Return the drawn calls, each with the ending of which the call is an example."""
    examples = [each.example for each in answers.endings if each.example is not None]
    return examples[:_MOST_TREES]


def _examples(answers: Answers) -> Iterator[Block]:
    """Yield the calls to look at, each where it belongs first."""
    drawn = drawn_with_endings(answers)
    for title, lines in (
        ("The slowest calls", answers.examples.slowest),
        ("Calls with most attempts", answers.examples.most_attempts),
    ):
        new = [line for line in lines if line not in drawn]
        if lines:
            above = len(lines) - len(new)
            yield Heading(title, f"{above:,} of them above" if above else "")
            yield from map(SavedLog, new)
            drawn += new


def _hints(answers: Answers) -> Iterator[Block]:
    if answers.hints:
        yield Heading("Hints")
        for hint in answers.hints:
            where = "" if hint.where is None else f"{shown(hint.where)}: "
            yield f"- {where}{hint.said}"
            yield f"  {hint.setting}"


def shown(text: str, longest: int = _WIDEST) -> str:
    """Return a text that came from a line, without control characters, perhaps cut."""
    text = printable(text[: longest + 1])
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


_GAP: Final = "  "


def plain_text(blocks: Iterable[Block]) -> str:
    """Return a text without colours, in lines without a break."""
    return "\n".join(line for block in blocks for line in lines(block))


def lines(block: Block, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a part.

    Args:
        block: The part.
        width: The columns that a table may have; any number where there is no edge.
    """
    if isinstance(block, Heading):
        yield ""
        yield f"{block.title}: {block.text}" if block.text else block.title
    elif isinstance(block, Table):
        yield from _table(block, width)
    elif isinstance(block, str):
        yield block
    else:
        yield block.render()


def widths(table: Table) -> list[int]:
    """Return the columns of a terminal that each column of a table takes."""
    return [max(map(cells, column)) for column in zip(*table.rows, strict=True)]


def _table(table: Table, width: int | None) -> Iterator[str]:
    wide = widths(table)
    if width is not None and sum(wide) + len(_GAP) * (len(wide) - 1) > width:
        yield from stacked(table, width)
        return
    names = table.rows[0]
    for row in table.rows:
        padded = (
            f"{text}{blanks}" if name in table.texts else f"{blanks}{text}"
            for name, text, blanks in (
                (name, text, " " * (width - cells(text)))
                for name, text, width in zip(names, row, wide, strict=True)
            )
        )
        yield _GAP.join(padded).rstrip()


def stacked(table: Table, width: int) -> Iterator[str]:
    """Yield the rows of a table that is too wide, each over lines of its own.

    The first column is the title. No number is broken in two, or left without the name
    of its column.
    """
    (_, *names), *rows = table.rows
    for title, *values in rows:
        yield title
        line = ""
        for name, value in zip(names, values, strict=True):
            longer = f"{line}, {name} {value}" if line else f"{_GAP}{name} {value}"
            if line and cells(longer) >= width:
                yield f"{line},"
                longer = f"{_GAP}{name} {value}"
            line = longer
        yield line
