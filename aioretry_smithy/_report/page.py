"""Show the answers of a report as one page of HTML, without scripts or network.

Needs the extra ``cli``.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Final

from .._errors import missing_extra

try:
    import jinja2
    from markupsafe import Markup
except ModuleNotFoundError as _cause:
    raise missing_extra("cli", _cause) from _cause

from .._log.saved_log import SavedLog
from .._log.timeline import COLOURS, OutcomeKind
from .._log.timeline_svg import DAY_AND_NIGHT, draw, style, text, ticks
from .._log.timeline_svg import STYLE as TIMELINE_STYLE
from .._log.tree import tree
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
)
from .document import drawn_with_endings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .answers import Answers, CallsByTime, Line, TimePart


_LONGEST: Final = 1000
"""Characters of a text; nobody reads more of it in a table."""


def legible(value: object) -> object:
    """Return a value, control characters of texts escaped, for the template."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return legible_text(value)
    return value


def legible_text(text: str) -> str:
    """Return a text without control characters, shortened if too long."""
    # Cut before all else; what is shown of it may be longer.
    shown = printable(text[: _LONGEST + 1])
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


_WAIT: Final = "wait"

_SWATCHES: Final[Mapping[str, tuple[str, str]]] = {
    "answer": COLOURS[OutcomeKind.SUCCESS][1:],
    "failed_attempt": COLOURS[OutcomeKind.FAILURE][1:],
    "superseded": COLOURS[OutcomeKind.SUPERSEDED][1:],
    "connection_queue": COLOURS[OutcomeKind.RUNNING][1:],
    "dns": COLOURS[OutcomeKind.REFUSED][1:],
    "connect": ("#0a3069", "#a5d6ff"),
    "body": COLOURS[OutcomeKind.ERROR][1:],
    "other": ("#afb8c1", "#484f58"),
    _WAIT: ("#7d4e00", "#e3b341"),
    "backoff": COLOURS[OutcomeKind.CANCELLED][1:],
    "retry_after": ("#bc4c00", "#f0883e"),
    "rate_limit": ("#bf3989", "#f778ba"),
    "circuit_breaker": ("#5e3c99", "#b2abd2"),
}


def swatch(part: TimePart) -> str:
    """Return the class of a part: a name of ours, whatever a line says."""
    source = part.source if part.part == _WAIT else None
    name = part.part if source is None else source
    return f"swatch-{name if name in _SWATCHES else _WAIT}"


def _rules() -> str:
    named = {f"swatch-{name}": _SWATCHES[name] for name in _SWATCHES}
    usual = {**DAY_AND_NIGHT, **named}
    day, night = (
        "".join(f"--{name}:{colours[time]};" for name, colours in usual.items())
        for time in (0, 1)
    )
    backgrounds = "".join(
        f".swatch-{name}{{background:var(--swatch-{name})}}" for name in _SWATCHES
    )
    return (
        f"<style>:root{{{day}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{night}}}}}{backgrounds}</style>"
    )


SWATCH_STYLE: Final = _rules()
"""The usual colours as variables, and the classes of the parts."""


_WIDTH: Final = 440
_HEIGHT: Final = 128
_LEFT: Final = 52
_RIGHT: Final = _WIDTH - 8
_ROOM: Final = _RIGHT - _LEFT
_TOP: Final = 30
_BOTTOM: Final = 102

_PANELS: Final = (
    ("calls", OutcomeKind.RUNNING, "calls"),
    ("failures", OutcomeKind.FAILURE, "calls without success"),
    ("retry_share", OutcomeKind.CANCELLED, "retries, % of attempts"),
    ("p99", OutcomeKind.ERROR, "p99, seconds"),
)
"""The numbers of moments with pictures: their names, colours and titles."""

MOMENT_STYLE: Final = style(
    {f"{kind}-area": COLOURS[outcome][1:] for kind, outcome, _ in _PANELS}, ()
)
"""The rules for the pictures, once for all on a page."""


def panels(timeline: CallsByTime) -> Iterator[str]:
    """Yield the pictures, without rules: calls, failures, retries, and how long.

    There is none of a single moment: there would be nothing to compare.
    """
    if len(timeline.moments) < 2:
        return
    first, last = (
        datetime.fromisoformat(timeline.moments[place].started_at) for place in (0, -1)
    )
    # Within a day nobody needs the date.
    shown = slice(11, 16) if first.date() == last.date() else slice(5, 16)
    ends = tuple(time.isoformat(" ")[shown] for time in (first, last))
    for kind, _, title in _PANELS:
        scale = 100 if kind == "retry_share" else 1
        heights = [scale * (value or 0.0) for value in timeline.series(kind)]
        yield _panel(kind, title, heights, ends)


def _panel(kind: str, title: str, values: list[float], ends: tuple[str, ...]) -> str:
    most = max(values)
    scale = most or 1.0
    # A line at zero, and one at the largest round number.
    marks = {0.0, *([*ticks(most)][-1][:1] if most else ())}
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        text(title, _LEFT, 16, "ink"),
        *(_mark(value, scale) for value in sorted(marks)),
        f'<path class="{kind}-area" d="{_outline(values, scale)}"/>',
        text(ends[0], _LEFT, _HEIGHT - 8, "muted"),
        text(ends[-1], _RIGHT, _HEIGHT - 8, "muted", anchor="end"),
        "</svg>",
    ]
    return "".join(parts)


def _mark(value: float, scale: float) -> str:
    y, name = _y(value, scale), f"{value:,.6g}"
    line = f'<path class="grid" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>'
    return line + text(name, _LEFT - 6, round(y + 4), "muted", anchor="end")


def _y(value: float, scale: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * value / scale


def _outline(values: list[float], scale: float) -> str:
    """Return the outline of an area with a flat top for each column."""
    drawn = f"M{_LEFT} {_BOTTOM}"
    for number, value in enumerate(values, 1):
        end = _LEFT + _ROOM * number / len(values)
        drawn += f"V{_y(value, scale):.1f}H{end:.1f}"
    return f"{drawn}V{_BOTTOM}Z"


_MOST_LINES: Final = 100
"""Lines of a tree: its beginning says enough."""

_MOST_ITEMS: Final = 20
"""Hints, remarks and files that are shown."""


def to_html(answers: Answers) -> str:
    """Return a self-contained HTML page."""
    page = _environment().get_template("report.html")
    values = {each.name: getattr(answers, each.name) for each in fields(answers)}
    return page.render(values, drawn=drawn_with_endings(answers))


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


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__name__.partition(".")[0], "_report"),
        autoescape=True,
        finalize=legible,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=count,
        counted=counted,
        moment=_moment,
        panels=_panels,
        part=part,
        per_call=per_call,
        picture=_picture,
        read=input_in_words,
        reason=reason,
        requests_without_retries=requests_without_retries,
        retries=retries_in_words,
        seconds=seconds,
        sentence=_sentence,
        share=share,
        swatch=swatch,
        tree=_tree,
    )
    style = Markup(SWATCH_STYLE + TIMELINE_STYLE + MOMENT_STYLE)  # noqa: S704
    environment.globals.update(most=_MOST_ITEMS, style=style)
    return environment


# The code that draws escapes what it writes.
def _panels(timeline: CallsByTime) -> Iterator[Markup]:
    return map(Markup, panels(timeline))


def _picture(line: Line) -> Markup:
    return Markup(draw(SavedLog(line), rules=""))  # noqa: S704


def _tree(line: Line) -> Markup:
    log = SavedLog(line)
    lines = tree(log, log.children).split("\n")
    more = len(lines) - _MOST_LINES
    if more > 0:
        lines[_MOST_LINES:] = [f"… {more} more lines"]
    return Markup("\n").join(map(legible_text, lines))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def _moment(time: str | None) -> str:
    """Format a UTC time without its zone."""
    return NOTHING if time is None else time[:19].replace("T", " ")
