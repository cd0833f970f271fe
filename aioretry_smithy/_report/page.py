"""Show the document of a report as one page of HTML, without scripts or network."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final, TypeAlias

from .._log.timeline_svg import STYLE, draw
from .document import Block, Heading, Table, blocks, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .._log.request_log import RequestLog
    from .._log.saved_log import SavedLog
    from .answers import Answers

    Log: TypeAlias = RequestLog | SavedLog

_MOST_BYTES: Final = 300_000
"""The size of a page that is easily sent on."""

_MOST_LINES: Final = 100
"""Lines of a tree: its beginning says enough."""

_LONGEST: Final = 1000
"""The most characters of a line that are shown."""

_HEAD: Final = """\
<!DOCTYPE html>
<html lang="en" xmlns="http://www.w3.org/1999/xhtml">
<head>
<meta charset="utf-8" />
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<title>report</title>
<style>
:root { color-scheme: light dark; }
body {
  margin: 0 auto; padding: 1.5rem; max-width: 72rem;
  background: Canvas; color: CanvasText;
  font: 14px/1.5 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
h1, h2 { font: 600 1.2rem system-ui, sans-serif; margin: 2rem 0 0.5rem; }
p, figure { margin: 0.25rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.scroll, pre { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.5rem 0; }
th, td { padding: 0.25rem 1rem 0.25rem 0; text-align: left; vertical-align: top; }
th { border-bottom: 1px solid; font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
svg { display: block; }
summary { cursor: pointer; }
@media print { .scroll, pre { overflow: visible; white-space: pre-wrap; } }
</style>
"""


def to_html(answers: Answers) -> str:
    """Return the page, complete in one file, and short enough to be sent on."""
    parts: list[str | Log] = [_HEAD, STYLE, "</head>\n<body>"]
    parts += map(_element, blocks(answers))
    parts.append("</body>\n</html>\n")
    room = _MOST_BYTES - sum(_size(each) for each in parts if isinstance(each, str))
    figures = _figures([each for each in parts if not isinstance(each, str)], room)
    return "\n".join(each if isinstance(each, str) else next(figures) for each in parts)


def to_frame(page: str) -> str:
    """Return a page as a part of another, whose rules for styles are left alone.

    >>> to_frame("<p>10 calls</p>")
    '<iframe ... srcdoc="&lt;p&gt;10 calls&lt;/p&gt;"></iframe>'
    """
    style = "width:100%;height:48rem;border:0"
    return (
        f'<iframe sandbox="" title="report" style="{style}"'
        f' srcdoc="{escape(page)}"></iframe>'
    )


def _element(block: Block) -> str | Log:
    """Return the markup of a block; a call is drawn later."""
    if isinstance(block, Heading):
        return f"<h2>{_text(block.title)}</h2>\n<p>{_text(block.text)}</p>"
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, str):
        return f"<p>{_text(block)}</p>"
    return block


def _table(table: Table) -> str:
    names, *rows = table.rows
    kinds = ["text" if name in table.texts else "number" for name in names]
    lines = ['<div class="scroll" tabindex="0"><table>', _row("th", kinds, names)]
    lines += (_row("td", kinds, row) for row in rows)
    return "\n".join([*lines, "</table></div>"])


def _row(tag: str, kinds: list[str], row: tuple[str, ...]) -> str:
    cells = (
        f'<{tag} class="{kind}">{_text(cell)}</{tag}>'
        for kind, cell in zip(kinds, row, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _figures(logs: Sequence[Log], room: int) -> Iterator[str]:
    """Yield the trees of calls, with the timelines for which there is room.

    The short ones: where some have to be left out, these are the most.
    """
    share = room // 2 // max(1, len(logs))
    trees = [_tree(log, share) for log in logs]
    room -= sum(map(_size, trees)) + _AROUND * len(logs)
    # The code that draws escapes what it writes.
    timelines = [draw(log, rules="") for log in logs]
    for number in sorted(range(len(logs)), key=lambda one: len(timelines[one])):
        room -= _size(timelines[number])
        if room < 0:
            timelines[number] = ""
    yield from map(_figure, timelines, trees)


_AROUND: Final = 200
"""The most bytes around a timeline and a tree."""


def _figure(timeline: str, tree: str) -> str:
    """Return the timeline of a call, below which its tree can be opened."""
    summary = "as text" if timeline else "as text: its timeline is too long for a page"
    is_open = "" if timeline else ' open="open"'
    return (
        f'<figure><div class="scroll" tabindex="0">{timeline}</div>'
        f"<details{is_open}><summary>{summary}</summary>"
        f'<pre tabindex="0">{tree}</pre></details></figure>'
    )


def _tree(log: Log, most: int) -> str:
    """Return the beginning of a tree, of so many lines and bytes."""
    lines = [*map(_text, log.render().split("\n"))]
    number, size = 0, 0
    for line in lines[:_MOST_LINES]:
        size += _size(line) + 1
        if size > most:
            break
        number += 1
    more = len(lines) - number
    if more > 0:
        lines[number:] = [f"… {more} more lines"]
    return "\n".join(lines)


def _size(text: str) -> int:
    return len(text.encode())


def _text(text: str) -> str:
    return escape(shown(text, _LONGEST))
