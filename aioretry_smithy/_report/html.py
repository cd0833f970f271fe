"""Show the answers of a report as one page of HTML, without scripts or network.

Needs the extra ``cli``.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Final

from .._extras import missing_extra

try:
    import jinja2
except ModuleNotFoundError as _cause:
    raise missing_extra("cli", _cause) from _cause

from markupsafe import Markup

from .._log.saved_log import SavedLog
from .._log.timeline_svg import STYLE as TIMELINE_STYLE
from .._log.timeline_svg import draw
from .._log.tree import tree
from . import words
from .document import drawn_with_endings
from .legible import legible
from .moments_svg import STYLE as MOMENTS_STYLE
from .moments_svg import panels
from .swatches import STYLE as SWATCHES
from .swatches import swatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .answers import Answers, Line, Timeline

_MOST_LINES: Final = 100
"""Lines of a tree: its beginning says enough."""

_MOST_ITEMS: Final = 20
"""Hints, remarks and files that are shown."""


def to_html(answers: Answers) -> str:
    """Return a page that is complete in itself."""
    shown = legible(answers)
    page = _environment().get_template("report.html")
    values = {each.name: getattr(shown, each.name) for each in fields(shown)}
    return page.render(values, drawn=drawn_with_endings(shown))


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
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=words.count,
        counted=words.counted,
        moment=_moment,
        panels=_panels,
        part=words.part,
        per_call=words.per_call,
        picture=_picture,
        read=words.input_in_words,
        reason=words.reason,
        requests_without_retries=words.requests_without_retries,
        retries=words.retries_in_words,
        seconds=words.seconds,
        sentence=_sentence,
        share=words.share,
        swatch=swatch,
        tree=_tree,
    )
    style = Markup(SWATCHES + TIMELINE_STYLE + MOMENTS_STYLE)  # noqa: S704
    environment.globals.update(most=_MOST_ITEMS, style=style)
    return environment


# The code that draws escapes what it writes.
def _panels(timeline: Timeline) -> Iterator[Markup]:
    return map(Markup, panels(timeline))


def _picture(line: Line) -> Markup:
    return Markup(draw(SavedLog(line), rules=""))  # noqa: S704


def _tree(line: Line) -> str:
    log = SavedLog(line)
    lines = tree(log, log.children).split("\n")
    more = len(lines) - _MOST_LINES
    if more > 0:
        lines[_MOST_LINES:] = [f"… {more} more lines"]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def _moment(time: str | None) -> str:
    """Write a moment without its zone, which is UTC."""
    return words.NOTHING if time is None else time[:19].replace("T", " ")
