"""The views of a log: a tree of lines, plain values, notes on an exception."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import east_asian_width

from ._errors import ResponseTimeoutError
from ._preview import CUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._log import RequestLog
    from ._mask import Mask

_LONGEST_CAUSE = 72
_NOTES = "_aioretry_smithy_notes"
_HIDDEN_BYTES = "b'****'"
_QUOTED_BYTES = re.compile(
    r"""(?sx) \bb
    # Not the end of a name, as in: circuit breaker 'service-b' is open, 'b' is open.
    (?<! \w[-./]b ) (?! (?<='b)'(?!\w) | (?<="b)"(?!\w) )
    (?: '(?:[^'\\]|\\.)*'? | "(?:[^"\\]|\\.)*"? )"""
)


def render(log: RequestLog) -> str:
    """Draw a call and its attempts."""
    return tree(log, log.children)


def tree(log: RequestLog, attempts: Sequence[RequestLog]) -> str:
    """Draw a call and these attempts: one that is under way may get more."""
    rows = aligned_rows(attempts)
    margin = "│  " if rows else "   "
    lines = [
        str(headline(log, attempts)),
        *(f"{margin}{line}" for line in request_preview_lines(log)),
    ]
    if not rows:
        lines += [f"{margin}{line}" for line in response_preview_lines(log)]
    for number, (child, row) in enumerate(zip(attempts, rows, strict=True), 1):
        branch, margin = ("└─ ", "   ") if number == len(rows) else ("├─ ", "│  ")
        lines.append(f"{branch}{''.join(row)}".rstrip())
        lines += [f"{margin}   {line}" for line in response_preview_lines(child)]
    return "\n".join(lines)


def request_preview_lines(log: RequestLog) -> list[str]:
    """Show how the body of the request begins, in a line, or in none."""
    return _preview_lines(">", log.request_content_preview, log.mask)


def response_preview_lines(log: RequestLog) -> list[str]:
    """Show how the body of the response begins, in a line, or in none."""
    return _preview_lines("<", log.response_content_preview, log.mask)


def content_preview(text: str | None, mask: Mask) -> str | None:
    """Hide the secrets in a preview of a body."""
    return None if text is None else mask.content(text)


def _preview_lines(arrow: str, text: str | None, mask: Mask) -> list[str]:
    shown = content_preview(text, mask)
    return [] if shown is None else [f"{arrow} {excerpt(shown)}"]


class Headline(NamedTuple):
    """What is said of a call."""

    request: str
    outcome: str
    rest: str

    def __str__(self) -> str:
        return f"{self.request}  ->  {self.outcome}{self.rest}"


def headline(log: RequestLog, attempts: Sequence[RequestLog]) -> Headline:
    """Say what was asked for and what became of it."""
    url = log.mask.text(str(log.request_url))
    took = _took(log)
    parts = [f"  in {took}"] if took else []
    if attempts:
        number = len(attempts)
        parts.append(f", {number} attempt{'' if number == 1 else 's'}")
    if log.attempt is None and log.delay is not None:
        parts.append(f", first waited {log.delay:.3f} s ({log.delay_source})")
    if log.stop_reason is not None:
        parts.append(f", stopped: {log.stop_reason}")
    request = printable(f"{log.request_method} {url}")
    return Headline(request, describe_outcome(log), "".join(parts))


class Row(NamedTuple):
    """What is said of an attempt; put together it is a line."""

    attempt: str
    outcome: str
    seconds: str
    wait: str


def aligned_rows(attempts: Sequence[RequestLog]) -> list[Row]:
    """Say what became of each attempt, in columns that are as wide as each other."""
    rows = [
        (f"{log.attempt}", describe_outcome(log), _took(log), _wait(log))
        for log in attempts
    ]
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    return [
        Row(
            f"{attempt:>{widths[0]}}  ",
            f"{result}{' ' * (widths[1] - cells(result))}   ",
            f"{seconds:>{widths[2]}}   ",
            wait,
        )
        for attempt, result, seconds, wait in rows
    ]


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(1 + (east_asian_width(character) in "FW") for character in text)


def to_dict(log: RequestLog) -> dict[str, Any]:
    """Return a log and its attempts as plain JSON values."""
    mask = log.mask
    reason, headers = log.response_reason, log.response_headers
    return {
        "name": mask.text(log.name),
        "request_method": mask.text(log.request_method),
        "request_url": mask.text(str(log.request_url)),
        "request_headers": mask.headers(log.request_headers),
        "request_content_preview": content_preview(log.request_content_preview, mask),
        "request_started_at": log.request_started_at.isoformat(),
        "response_timeout": log.response_timeout,
        "response_status": log.response_status,
        "response_reason": None if reason is None else mask.text(reason),
        "response_headers": None if headers is None else mask.headers(headers),
        "response_cause": describe_cause(log),
        "response_length": log.response_length,
        "response_content_preview": content_preview(log.response_content_preview, mask),
        "duration": log.duration,
        "total_duration": log.total_duration,
        "is_complete": log.is_complete,
        "attempt": log.attempt,
        "total_attempts": log.total_attempts,
        "delay": log.delay,
        "delay_source": log.delay_source,
        "stop_reason": log.stop_reason and str(log.stop_reason),
        "retry_error": log.retry_error and describe_error(log.retry_error, mask),
        "children": [to_dict(child) for child in log.children],
    }


def add_notes(log: RequestLog, error: BaseException) -> None:
    """Note the attempts of a call, where it made several, on what ended it.

    An exception that had ended another call before loses the notes of that one: some
    are raised again and again, in aiohttp as well as in tests.
    """
    attempts = log.children if len(log.children) > 1 else ()
    notes = [note(attempt) for attempt in attempts]
    attributes = vars(error)
    stale = attributes.pop(_NOTES, ())
    if stale:
        kept = getattr(error, "__notes__", ())
        error.__notes__ = [line for line in kept if line not in stale]
    if notes:
        attributes[_NOTES] = notes
        for line in notes:
            error.add_note(line)


def describe_outcome(log: RequestLog) -> str:
    """Say in a few words how a call or an attempt ended."""
    status, cause = log.response_status, log.response_cause
    if status is not None:
        text = f"{status} {log.response_reason or ''}".rstrip()
        answer = printable(log.mask.text(text))
        return answer if cause is None else f"{answer}, {_beside_status(log, cause)}"
    if cause is None:
        return "no response yet"
    if log.attempt and isinstance(cause, ResponseTimeoutError):
        # What it says, its number and its seconds, stands beside it.
        return type(cause).__name__
    return excerpt(describe_error(cause, log.mask))


def _beside_status(log: RequestLog, cause: BaseException) -> str:
    """Say what an answer failed with."""
    described = describe_error(cause, log.mask)
    if isinstance(cause, ResponseTimeoutError):
        return printable(described.removeprefix(f"{type(cause).__name__}: "))
    return excerpt(described)


def describe_cause(log: RequestLog) -> str | None:
    """Return the class and the message of a log's failure, credentials hidden."""
    cause = log.response_cause
    return None if cause is None else describe_error(cause, log.mask)


def describe_error(error: BaseException, mask: Mask) -> str:
    """Return the class and the message of an error, credentials hidden."""
    name = type(error).__name__
    try:
        message = str(error)
    except Exception:
        # Made by hand for a test, errors of aiohttp often lack what they tell of.
        return name
    if "Bad status line" not in message:
        # A header that aiohttp cannot read is quoted, a cookie often without its name.
        message = _QUOTED_BYTES.sub(_HIDDEN_BYTES, message)
    message = mask.text(message)
    return f"{name}: {message}" if message else name


def printable(text: str) -> str:
    """Escape what would move a terminal's cursor or break a line."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape").decode()
        for character in text
    )


def excerpt(text: str, longest: int = _LONGEST_CAUSE) -> str:
    """Return so many printable characters of a text, the last one a sign of a cut."""
    # Cut before all else: what a server sends may be megabytes, and is masked by now.
    text = printable(text[: longest + 1])
    return text if len(text) <= longest else f"{text[: longest - 1]}{CUT}"


def _took(log: RequestLog) -> str:
    """Return the seconds to the headers or the failure, that of the body too."""
    outcome = log._outcome
    has_failed_body = outcome.status is not None and outcome.cause is not None
    duration = log.total_duration if has_failed_body else log.duration
    return "" if duration is None else f"{duration:.3f} s"


def note(attempt: RequestLog) -> str:
    """Say in a line what became of an attempt."""
    wait = _wait(attempt)
    parts = [describe_outcome(attempt), _took(attempt)]
    return f"attempt {attempt.attempt}: {', '.join(filter(None, [*parts, wait]))}"


def _wait(log: RequestLog) -> str:
    if log.delay is None:
        return ""
    return f"then waited {log.delay:.3f} s ({log.delay_source})"
