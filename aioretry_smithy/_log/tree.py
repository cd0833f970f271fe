"""The views of a log: a tree of lines, and plain values."""

from __future__ import annotations

import re
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar
from unicodedata import east_asian_width

import aiohttp

from .._errors import ResponseTimeoutError
from .._failures.failure import was_in_pool, where_passed
from .._text.printable import printable
from .error_text import (
    LONGEST_CAUSE,
    describe_cause,
    describe_error,
    excerpt,
    masked_message,
    message_of,
    server_first,
    without_middle,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .._call.record import ConnectionTimings
    from .._text.mask import Mask
    from .facts import LogFacts


_SHORTEST: Final = 0.001
"""Seconds of such a wait that are worth a word."""

_LEAST: Final = 0.1
"""The least share of the request's time that is worth a mention."""


def long_wait(log: LogFacts) -> ConnectionTimings | None:
    """Return what a request waited for, if that was long, and a tenth of its time."""
    timings = log.connection
    if timings is None or timings.waited < _SHORTEST:
        return None
    duration = log.duration
    is_long = duration is None or timings.waited >= duration * _LEAST
    return timings if is_long else None


def describe_connection(log: LogFacts) -> str:
    """Describe the time that a request waited for its connection; empty if short.

    Nor where its outcome says so: it was cut in the queue.
    """
    timings = long_wait(log)
    if timings is None or was_in_pool(log.response_cause):
        return ""
    words = in_words(timings)
    return f"{words} so far" if log.duration is None else f"of which {words}"


def in_words(timings: ConnectionTimings) -> str:
    """Name the longest wait: that in the queue, on this side, or that for the rest."""
    queued = timings.queued or 0.0
    if queued >= timings.waited / 2:
        return f"{queued:.3f} s in the pool's queue"
    return f"{timings.waited:.3f} s for a connection"


_T = TypeVar("_T")

RETRIES_OFF: Final = "retries are off (AIORETRY_SMITHY_NO_RETRIES)"
"""The text for a call whose retries are switched off by the environment."""

_NO_TIME = "0.000 s"
# What our own strategies say when they refuse, where the stop reason says it too.
_REPEATED = re.compile(r"all attempts are made: \d+|no delay left after \d+ attempts")


class Node(NamedTuple, Generic[_T]):
    """A part of a tree: its lines, of any kind, and the parts inside."""

    lines: list[_T]
    inside: list[Node[_T]]


def branches(node: Node[_T]) -> Iterator[tuple[str, _T]]:
    """Yield the lines of the tree, each with its branch drawn in front."""
    start = ""
    for line in node.lines:
        yield start, line
        start = "│  " if node.inside else "   "
    for number, part in enumerate(node.inside, 1):
        is_last = number == len(node.inside)
        start, trunk = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        for branch, line in branches(part):
            yield f"{start}{branch}", line
            start = trunk


def tree(log: LogFacts, attempts: Sequence[LogFacts]) -> str:
    """Draw a call with the given attempts; more may follow in a running call."""
    drawn = branches(_call(log, attempts))
    return "\n".join(f"{branch}{line}" for branch, line in drawn)


def _call(log: LogFacts, attempts: Sequence[LogFacts]) -> Node[str]:
    rows = [
        Node(["".join(row).rstrip(), *preview_lines(attempt, "<")], _calls(attempt))
        for attempt, row in zip(attempts, aligned_rows(attempts), strict=True)
    ]
    for place, dropped in enumerate(_gaps(attempts), 1):
        if dropped:
            rows.insert(place, Node([f"and {counted(dropped, 'more attempt')}"], []))
    lines = [str(headline(log, attempts)), *previews_of_call(log, attempts)]
    return Node(lines, [*_calls(log), *rows])


def _gaps(attempts: Sequence[LogFacts]) -> list[int]:
    """Return the numbers of dropped attempts between neighbouring kept attempts."""
    numbers = pairwise(log.attempt or 0 for log in attempts)
    return [max(0, after - before - 1) for before, after in numbers]


def _calls(log: LogFacts) -> list[Node[str]]:
    calls = [_call(call, call.children) for call in log.calls]
    rest = more_calls(log)
    return calls if rest is None else [*calls, Node([rest], [])]


def more_calls(log: LogFacts) -> str | None:
    """Say how many calls were made inside whose logs were not kept, if any."""
    number = log.dropped_calls
    return f"and {counted(number, 'more call')}" if number else None


def previews_of_call(log: LogFacts, attempts: Sequence[LogFacts]) -> list[str]:
    """Show how the bodies of a call begin; attempts show what came back themselves."""
    return preview_lines(log, ">" if attempts else "><")


def preview_lines(log: LogFacts, arrows: str) -> list[str]:
    """Show in a line each how bodies begin: ``>`` what was sent, ``<`` what came."""
    texts = {">": log.request_content_preview, "<": log.response_content_preview}
    previews = (content_preview(texts[arrow], log.mask) for arrow in arrows)
    lines = zip(arrows, previews, strict=True)
    return [f"{arrow} {excerpt(text)}" for arrow, text in lines if text is not None]


def content_preview(text: str | None, mask: Mask) -> str | None:
    """Hide the secrets in a preview of a body."""
    return None if text is None else mask.content(text)


class Headline(NamedTuple):
    """The first line of a rendered log, about the call."""

    request: str
    outcome: str
    rest: str

    def __str__(self) -> str:
        return f"{self.request}  ->  {self.outcome}{self.rest}"


def headline(log: LogFacts, attempts: Sequence[LogFacts]) -> Headline:
    """Describe the request and its outcome."""
    outcome = _answer_or_cause(log)
    parts = []
    origin = _origin(log)
    if origin is not None:
        parts.append(f", {origin}")
    if _was_never_sent(log):
        parts.append(_time(log, outcome, " after ", " after "))
    else:
        parts.append(_time(log, outcome, "  in ", "  after "))
        if attempts:
            number = len(attempts) + sum(_gaps(attempts))
            parts.append(f", {counted(number, 'attempt')}")
    waited = "" if attempts else describe_connection(log)
    if waited:
        parts.append(f", {waited}")
    if log.attempt is None and log.delay is not None:
        parts.append(f", first waited {describe_delay(log)}")
    if not attempts and log.endpoint is not None:
        parts.append(f", at {log.endpoint}")
    change = "" if log.attempt else printable(log._described_change())
    if change:
        parts.append(f", changed to {change}")
    stop = describe_stop(log)
    if stop is not None:
        parts.append(f", stopped: {stop}")
    if log.no_retries:
        parts.append(f", {RETRIES_OFF}")
    return Headline(printable(log._described()), outcome, "".join(parts))


def describe_change(log: LogFacts) -> str:
    """Say what an attempt asked for, where a decorator has made another of a request.

    Another endpoint is no change of it.
    """
    return excerpt(printable(log._described_change()))


def counted(number: int, noun: str) -> str:
    """Return a count with its noun, in the plural if needed."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Row(NamedTuple):
    """One line of a rendered log, about an attempt."""

    attempt: str = ""
    outcome: str = ""
    seconds: str = ""
    wait: str = ""


def aligned_rows(attempts: Sequence[LogFacts]) -> list[Row]:
    """Describe the outcome of each attempt, in columns of the same width."""
    views = describe_outcome, describe_seconds, describe_waits
    names = _names(attempts)
    rows = [
        (name, *(view(log) for view in views))
        for name, log in zip(names, attempts, strict=True)
    ]
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    return [
        Row(
            f"{attempt}  ",
            f"{result}{' ' * (widths[1] - cells(result))}   ",
            f"{seconds:>{widths[2]}}   ",
            wait,
        )
        for attempt, result, seconds, wait in rows
    ]


def _names(attempts: Sequence[LogFacts]) -> list[str]:
    """Number the attempts, and say where each went; all are equally long.

    That is its endpoint, and the request where a decorator has changed it.
    """
    widest = max((len(f"{log.attempt}") for log in attempts), default=0)
    names = [f"{log.attempt:>{widest}}" for log in attempts]
    for column in (
        [log.endpoint or "" for log in attempts],
        [describe_change(log) for log in attempts],
    ):
        longest = max(map(cells, column), default=0)
        if longest:
            names = [
                f"{name}  {words}{' ' * (longest - cells(words))}"
                for name, words in zip(names, column, strict=True)
            ]
    return names


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(1 + (east_asian_width(character) in "FW") for character in text)


def describe_outcome(log: LogFacts, longest: int = LONGEST_CAUSE) -> str:
    """Say in a few words how a call or an attempt ended."""
    said = "superseded" if log.superseded else _answer_or_cause(log, longest)
    origin = _origin(log)
    return said if origin is None else f"{said}, {origin}"


def _origin(log: LogFacts) -> str | None:
    """Say where an outcome comes from; None for that of a server."""
    if log.injected:
        return "injected"
    return "not sent" if _was_never_sent(log) else None


def _was_never_sent(log: LogFacts) -> bool:
    return log.duration is not None and not log.sent


def _answer_or_cause(log: LogFacts, longest: int = LONGEST_CAUSE) -> str:
    status, cause = log.response_status, log.response_cause
    if status is not None:
        text = f"{status} {log.response_reason or ''}".rstrip()
        answer = printable(log.mask.text(text))
        failure = None if cause is None else _beside_status(log, cause, longest)
        return answer if failure is None else f"{answer}, {failure}"
    if cause is None:
        return "no response yet" if log.duration is None else "returned"
    where = where_passed(cause)
    if where and (log.attempt or not isinstance(cause, ResponseTimeoutError)):
        # Its message would be cut, where it is not said beside it.
        return f"{type(cause).__name__}, {where}"
    described = describe_error(cause, log.mask)
    if (
        log.attempt
        and isinstance(cause, ResponseTimeoutError)
        and described not in map(describe_cause, log.calls)
    ):
        # Its message, the number and the seconds, stands beside it.
        return type(cause).__name__
    # The reason is at the end, and the host stands at the beginning of the line.
    is_unconnected = isinstance(cause, aiohttp.ClientConnectorError)
    shorten = without_middle if is_unconnected else excerpt
    return _of_other_server(log, described, longest) or shorten(described, longest)


def _of_other_server(log: LogFacts, text: str, longest: int) -> str | None:
    """Shorten what is said of a server that the line does not name; None of its own."""
    if len(text) <= longest or log.request_method is None:
        # A function has no server of its own; its requests stand below.
        return None
    asked = f"{log._described()} {log._described_change()} {log.endpoint or ''}"
    said = server_first(text, asked)
    return None if said is None else excerpt(said, longest)


def _time(log: LogFacts, outcome: str, after_answer: str, after_time: str) -> str:
    """Say how long it took, unless that was said, or no time at all unsent."""
    took = describe_seconds(log)
    if not took or outcome.endswith(took) or (took == _NO_TIME and not log.sent):
        return ""
    return f"{after_time if outcome.endswith(' s') else after_answer}{took}"


def describe_stop(log: LogFacts) -> str | None:
    """Describe why there was no further attempt; None if the call was not stopped."""
    reason, words = stop_in_words(log)
    return f"{reason} ({words})" if words else reason


def stop_in_words(
    log: LogFacts, longest: int = LONGEST_CAUSE
) -> tuple[str | None, str]:
    """Return why there was no further attempt, and the refusal in words."""
    reason, refusal = log.stop_reason, log.retry_error
    if reason is None:
        return None, ""
    if log.limiter is not None:
        return str(reason), excerpt(printable(log.mask.text(log.limiter)), longest)
    if refusal is None or describe_error(refusal, log.mask) == describe_cause(log):
        return str(reason), ""
    words = message_of(refusal, log.mask)
    return str(reason), "" if _REPEATED.fullmatch(words) else excerpt(words, longest)


def _beside_status(log: LogFacts, cause: BaseException, longest: int) -> str:
    """Say what an answer failed with."""
    if isinstance(cause, ResponseTimeoutError):
        return printable(message_of(cause, log.mask))
    if isinstance(cause, aiohttp.ClientResponseError) and (
        cause.status == log.response_status
    ):
        # Its text begins with the status, and ends with the URL of the call.
        message = masked_message(cause.message, log.mask)
        said = "" if cause.message == log.response_reason else f": {message}"
        return excerpt(f"{type(cause).__name__}{said}", longest)
    described = describe_error(cause, log.mask)
    return _of_other_server(log, described, longest) or excerpt(described, longest)


def describe_seconds(log: LogFacts) -> str:
    """Describe the time to the headers or to the failure; empty before."""
    duration = seconds_taken(log)
    return "" if duration is None else f"{duration:.3f} s"


def seconds_taken(log: LogFacts) -> float | None:
    """Return how long it took, to the headers or the failure, that of the body too."""
    has_failed_body = log.response_status is not None and log._has_failed()
    return log.total_duration if has_failed_body else log.duration


def describe_waits(log: LogFacts) -> str:
    """Say what was waited: for a connection, before a hedge, after the attempt."""
    parts = [*filter(None, (describe_connection(log),))]
    after = log._hedged_after()
    if after is not None:
        parts.append(f"hedge after {after:.3f} s")
    if log.delay_source == "stale_connection":
        parts.append("then sent again (stale_connection)")
    elif log.delay_source == "next_endpoint":
        parts.append("then at once to the next endpoint")
    elif log.delay is not None:
        parts.append(f"then waited {describe_delay(log)}")
    return ", ".join(parts)


def describe_delay(log: LogFacts) -> str:
    """Say how long a wait was, and what it was for."""
    if log.delay_source == "circuit_breaker":
        return f"{log.delay:.3f} s for the circuit"
    return f"{log.delay:.3f} s ({log.delay_source})"


def to_dict(log: LogFacts) -> dict[str, object]:
    """Return a log and its attempts as plain JSON values."""
    mask = log.mask
    values: dict[str, object] = {
        "id": log.id,
        "name": mask.text(log.name),
        "request_method": _text(log.request_method, mask),
        "request_url": _text(log.request_url, mask),
        "sent_method": _text(log.sent_method, mask),
        "sent_url": _text(log.sent_url, mask),
        "request_headers": _headers(log.request_headers, mask),
        "request_content_preview": content_preview(log.request_content_preview, mask),
        "request_started_at": log.request_started_at.isoformat(),
        "request_length": log.request_length,
        "request_duration": log.request_duration,
        "endpoint": log.endpoint,
        "sent": log.sent,
        "is_success": log.is_success,
        "injected": log.injected,
        "connection": log.connection and asdict(log.connection),
        "response_timeout": log.response_timeout,
        "response_status": log.response_status,
        "response_reason": _text(log.response_reason, mask),
        "response_headers": _headers(log.response_headers, mask),
        "response_cause": describe_cause(log),
        "response_cause_type": log.response_cause_type,
        "response_length": log.response_length,
        "response_content_preview": content_preview(log.response_content_preview, mask),
        "duration": log.duration,
        "total_duration": log.total_duration,
        "is_complete": log.is_complete,
        "attempt": log.attempt,
        "is_hedge": log.is_hedge,
        "superseded": log.superseded,
        "total_attempts": log.total_attempts,
        "delay": log.delay,
        "delay_source": log.delay_source,
        "stop_reason": log.stop_reason and str(log.stop_reason),
        "retry_error": log.retry_error and describe_error(log.retry_error, mask),
        "children": [to_dict(child) for child in log.children],
    }
    if log.limiter is not None:
        values["limiter"] = _text(log.limiter, mask)
    if log.no_retries:
        values["no_retries"] = True
    if log.request_method is None:
        # Of a function.
        values["calls"] = [to_dict(call) for call in log.calls]
        values["dropped_calls"] = log.dropped_calls
    return values


def _text(value: object, mask: Mask) -> str | None:
    return None if value is None else mask.text(str(value))


def _headers(headers: Mapping[str, str] | None, mask: Mask) -> dict[str, str] | None:
    return None if headers is None else mask.headers(headers)
