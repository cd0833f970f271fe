"""Describe a call in a line, and its attempts in notes on the failure."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .._call.recorder import attach_to_error
from .._text.printable import printable
from . import tree
from .request_log import log_of

if TYPE_CHECKING:
    from .._call.call import Call
    from .facts import LogFacts


_LONGEST: Final = 240
"""The longest text of a failure in the line, in characters."""


def one_line(log: LogFacts) -> str:
    """Name a request, its outcome, attempts and time, and why it stopped, in a line."""
    outcome = tree.describe_outcome(log, _LONGEST)
    parts = [f"{printable(log._described())} -> {outcome}{_effort(log)}"]
    if log.endpoint is not None:
        parts.append(f" at {printable(log.endpoint)}")
    reason, words = tree.stop_in_words(log, _LONGEST)
    if reason is not None:
        parts.append(f" ({reason}: {words})" if words else f" ({reason})")
    change = "" if log.attempt else tree.describe_change(log)
    if change:
        parts.append(f", changed to {change}")
    if log.no_retries:
        parts.append(f", {tree.RETRIES_OFF}")
    return "".join([*parts, f", id={log.id}"])


def _effort(log: LogFacts) -> str:
    """Describe the number of attempts (of an attempt, its number) and the duration."""
    seconds = tree.seconds_taken(log)
    took = "" if seconds is None else f" in {_shown(seconds)}"
    if log.attempt is not None:
        kind = "hedge, attempt" if log.is_hedge else "attempt"
        return f", {kind} {log.attempt}{took}"
    if log.children:
        return f", {tree.counted(log.total_attempts or 0, 'attempt')}{took}"
    return took


def _shown(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds < 1 else f"{seconds:.2f} s"


_NOTES: Final = "_aioretry_smithy_notes"


def annotate(call: Call, cause: BaseException, *, keep: bool = False) -> None:
    """Attach a call and notes to *cause*, which the caller gets.

    Where it comes out of a call made inside, *keep* the notes of that.
    """
    attach_to_error(call, cause)
    # An exception of the user's own may refuse to be written on.
    with suppress(Exception):
        add_notes(log_of(call, call), cause, keep=keep)


def add_notes(log: LogFacts, error: BaseException, *, keep: bool = False) -> None:
    """Add a note for each attempt to the exception, if the call made several attempts.

    An exception that had ended another call before loses the notes of that one: some
    are raised again and again, in aiohttp as well as in tests. *keep* those of a call
    made inside this one.
    """
    attempts = log.children if len(log.children) > 1 else ()
    notes = [f"{note(attempt)}, id={attempt.id}" for attempt in attempts]
    if notes and log.limiter is not None:
        notes[-1] += f", stopped: {tree.describe_stop(log)}"
    attributes = vars(error)
    stale = () if keep else attributes.pop(_NOTES, ())
    if stale:
        kept = getattr(error, "__notes__", ())
        error.__notes__ = [line for line in kept if line not in stale]
    if notes:
        attributes[_NOTES] = [*attributes.get(_NOTES, ()), *notes]
        for line in notes:
            error.add_note(line)


def note(attempt: LogFacts) -> str:
    """Describe the outcome of an attempt in a line."""
    name = f"attempt {attempt.attempt}"
    if attempt.endpoint is not None:
        name = f"{name} at {attempt.endpoint}"
    change = tree.describe_change(attempt)
    if change and attempt.request_method is not None:
        name = f"{name} ({change})"
    if attempt.request_method is None:
        # It may stand below the attempts of a call inside.
        name = printable(attempt.mask.text(f"{name} of {attempt.name}"))
    views = tree.describe_outcome, tree.describe_seconds, tree.describe_waits
    return f"{name}: {', '.join(filter(None, (view(attempt) for view in views)))}"
