"""Show a call, or an attempt, in one line for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._text import printable
from .tree import (
    RETRIES_OFF,
    counted,
    describe_change,
    describe_outcome,
    seconds_taken,
    stop_in_words,
)

if TYPE_CHECKING:
    from .facts import LogFacts

_LONGEST: Final = 240
"""The longest text of a failure in the line, in characters."""


def one_line(log: LogFacts) -> str:
    """Name a request, its outcome, attempts and time, and why it stopped, in a line."""
    outcome = describe_outcome(log, _LONGEST)
    parts = [f"{printable(log._described())} -> {outcome}{_effort(log)}"]
    if log.endpoint is not None:
        parts.append(f" at {printable(log.endpoint)}")
    reason, words = stop_in_words(log, _LONGEST)
    if reason is not None:
        parts.append(f" ({reason}: {words})" if words else f" ({reason})")
    change = "" if log.attempt else describe_change(log)
    if change:
        parts.append(f", changed to {change}")
    if log.no_retries:
        parts.append(f", {RETRIES_OFF}")
    return "".join([*parts, f", id={log.id}"])


def _effort(log: LogFacts) -> str:
    """Describe the number of attempts (of an attempt, its number) and the duration."""
    seconds = seconds_taken(log)
    took = "" if seconds is None else f" in {_shown(seconds)}"
    if log.attempt is not None:
        kind = "hedge, attempt" if log.is_hedge else "attempt"
        return f", {kind} {log.attempt}{took}"
    if log.children:
        return f", {counted(log.total_attempts or 0, 'attempt')}{took}"
    return took


def _shown(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds < 1 else f"{seconds:.2f} s"
