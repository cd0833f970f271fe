"""Write the numbers of a report in words; all views show them like this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .answers import Input, Part, Summary

NOTHING: Final = "-"

_PARTS: Final = {
    "answer": "answers",
    "failed_attempt": "failed attempts",
    "superseded": "overtaken by a hedge",
    "connection_queue": "the pool's queue",
    "dns": "DNS",
    "connect": "connecting",
    "body": "bodies",
    "other": "between attempts",
}
_SPENT: Final = {
    "answer": "on answers",
    "failed_attempt": "on failed attempts",
    "superseded": "on requests that a hedge overtook",
    "connection_queue": "in the pool's queue",
    "dns": "on DNS",
    "body": "on bodies",
}
"""The words for a part in a sentence, where they are not its name."""

_MOST_SAID: Final = 3
_LEAST_SAID: Final = 0.02
_WAITS: Final = {
    "backoff": "waiting for the backoff",
    "retry_after": "waiting for Retry-After",
    "rate_limit": "waiting for a rate limit",
    "endpoint": "waiting for an endpoint",
}


def seconds(value: float | None) -> str:
    """Write a time, in a unit that needs few digits.

    >>> [seconds(value) for value in (None, 0.00042, 0.0106, 2.0543, 168.7, 5000.0)]
    ['-', '0.42 ms', '10.6 ms', '2.05 s', '169 s', '1.39 h']
    """
    if value is None:
        return NOTHING
    if not value:
        return "0 s"
    if value < 1:
        return f"{_three_digits(value * 1000)} ms"
    if value < 3600:
        return f"{_three_digits(value)} s"
    return f"{_three_digits(value / 3600)} h"


def _three_digits(value: float) -> str:
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f}"


def share(value: float) -> str:
    """Write a share in percent; what is no 100 % does not look like it.

    >>> [share(value) for value in (0, 0.002, 0.3, 0.9305, 0.99996, 1)]
    ['0 %', '0.20 %', '30.00 %', '93.05 %', '> 99.99 %', '100 %']
    """
    if 0.9999 < value < 1:
        return "> 99.99 %"
    if 0 < value < 0.0001:
        return "< 0.01 %"
    digits = 0 if value in {0, 1} else 2
    return f"{value:.{digits}%}".replace("%", " %")


def count(value: float) -> str:
    """Write a count, which is no whole number where lines were sampled.

    >>> count(20000), count(33.3333)
    ('20,000', '33.3')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def reason(value: str | None) -> str:
    """Name the reason for a call to stop: a limiter is a budget to most people.

    >>> reason("limiter"), reason("deadline"), reason(None)
    ('retry budget', 'deadline', '-')
    """
    return "retry budget" if value == "limiter" else value or NOTHING


def counted(value: float, noun: str) -> str:
    """Write a count of things that have a name.

    >>> counted(1, "call"), counted(1.5, "call"), counted(2000, "call")
    ('1 call', '1.5 calls', '2,000 calls')
    """
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def part(value: Part) -> str:
    """Name a part of the time."""
    if value.source is None:
        return _PARTS[value.part]
    return _WAITS.get(value.source, f"waiting ({value.source})")


def shares_in_words(parts: Sequence[Part]) -> str:
    """Say what slow calls spent their time on: the largest parts."""
    named = [
        f"{share(each.slowest_share)} {_SPENT.get(each.part) or part(each)}"
        for each in parts[:_MOST_SAID]
        if each.slowest_share >= _LEAST_SAID
    ]
    return ", ".join(named) or "no time"


def per_call(value: float) -> str:
    """Write a number for each call.

    >>> per_call(1.0741)
    '1.074'
    """
    return f"{value:,.3f}"


def requests_without_retries(summary: Summary) -> float:
    """Return the requests of each call that are no retries: one, and what is kin."""
    further = summary.hedges + summary.resends + summary.resumes
    return 1 + further / summary.calls if summary.calls else 1.0


def retries_in_words(summary: Summary) -> str | None:
    """Say what retries were good for and what they cost; None where there were none."""
    if not summary.retries:
        return None
    saved = summary.successes_by_retries / summary.calls
    cost = per_call(summary.retries / summary.calls)
    return f"retries saved {share(saved)} of the calls and cost {cost} requests each"


_SKIPPED: Final = {
    "no_json": "no JSON",
    "no_call": "no calls",
    "attempt": "attempts alone: put the LoggingClient outside the retrying client",
    "not_nested": "not nested: use LogFormatter.json(nested=True)",
    "several": "several calls each: write each call on a line of its own",
    "too_long": "longer than 16 MB",
    "too_deep": "nested too deep",
    "under_way": "calls under way",
}


def input_in_words(read: Input) -> Iterator[str]:
    """Yield what could not be used, and what a reader of the numbers must know."""
    if read.left_out:
        yield f"left out: {counted(read.left_out, 'call')} not asked for"
    if read.inside:
        yield f"left out: {counted(read.inside, 'line')} of calls inside others"
    for reason, lines in read.skipped.items():
        yield f"skipped: {counted(lines, 'line')}, {_SKIPPED.get(reason, reason)}"
    if read.sampled:
        yield f"sampled: {counted(read.sampled, 'line')}, for more calls than one each"
    if read.unknown_bodies:
        yield f"unknown: the end of the body, of {counted(read.unknown_bodies, 'call')}"
    if read.without_id:
        yield f"without id: {counted(read.without_id, 'call')} of older versions"
    for warning in read.warnings:
        yield f"warning: {warning}"
