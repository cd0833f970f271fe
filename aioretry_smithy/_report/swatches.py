"""Give the parts of a call's time their colours on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._log.svg import DAY_AND_NIGHT
from .._log.timeline import COLOURS, OutcomeKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .answers import Part

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
}


def swatch(part: Part) -> str:
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


STYLE: Final = _rules()
"""The usual colours as variables, and the classes of the parts."""
