"""Look at a call: its attempts, which of them were retries, and the calls inside."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from .histogram import bucket_of
from .outcome import cause_type, is_success, status_of
from .values import dictionaries, number, text

if TYPE_CHECKING:
    from .answers import Line

ROUNDED: Final = 1e-5
"""Seconds that may be missing because moments are written to the microsecond."""

_MOST_LEVELS: Final = 20
_STALE: Final = "stale_connection"
_SENT_AGAIN: Final = frozenset({_STALE, "token"})
_WITH_CONTENT: Final = frozenset({200, 206})


class TooDeepError(ValueError):
    """Calls are nested deeper than anybody nests functions."""


class SeenAttempt(NamedTuple):
    """One request of a call, or the call itself where it has no attempts."""

    values: Line
    is_success: bool
    is_superseded: bool
    is_hedge: bool

    is_retried: bool
    """Whether an attempt followed that was no hedge, no resend and no part."""

    is_first: bool
    """Whether the request is of the first attempt: its own, a hedge or a resend."""

    calls: tuple[SeenCall, ...]
    """The calls that were made inside."""


class SeenCall:
    """A call, with what its attempts say together.

    Args:
        values: Its line, or a part of one.
        level: How many calls it is made inside of.

    Raises:
        TooDeepError: Calls inside it are nested too deep.
    """

    __slots__ = (
        "attempts",
        "bucket",
        "duration",
        "extra",
        "hedges",
        "is_rescued",
        "is_success",
        "is_success_at_once",
        "requests",
        "resends",
        "resumes",
        "retries",
        "values",
        "waited",
    )

    attempts: tuple[SeenAttempt, ...]

    duration: float | None
    """Seconds to the headers or the failure, if they are known."""

    bucket: int
    """That of its duration in histograms."""

    is_success: bool

    is_rescued: bool
    """Whether retries made it a success; a fallback may do that, too."""

    is_success_at_once: bool
    """Whether it was a success without any retry, also in the calls inside."""

    requests: int
    """Requests of it and of the calls inside; a function makes those of its calls."""

    extra: int
    """Requests beyond one for the call itself and for each call inside."""

    retries: int
    """Attempts after the first, of the calls inside too, which are none of these:"""

    hedges: int
    resends: int
    resumes: int
    """Requests for the rest of a download."""

    waited: float
    """Seconds before the first attempt, and between its own attempts."""

    def __init__(self, values: Line, level: int = 0) -> None:
        if level > _MOST_LEVELS:
            raise TooDeepError
        self.values = values
        self.duration = number(values, "duration")
        self.bucket = bucket_of(self.duration or 0.0)
        self.is_success = is_success(values)
        self.waited = number(values, "delay") or 0.0
        self.hedges = self.resends = self.resumes = self.retries = self.extra = 0
        children = dictionaries(values, "children")
        if children:
            self.attempts = self._attempts(children, level)
        else:
            calls = _calls(values, level)
            self.attempts = (
                SeenAttempt(values, self.is_success, False, False, False, True, calls),
            )
        self._count_inside()

    def _attempts(self, children: list[Line], level: int) -> tuple[SeenAttempt, ...]:
        attempts: list[SeenAttempt] = []
        last, rests = _last_of_its_own(children), _rests(children)
        goes_on, rounds = False, 0
        for position, child in enumerate(children):
            is_hedge, source = _is_hedge(child), text(child, "delay_source")
            is_resent = source in _SENT_AGAIN
            if not is_hedge:
                rounds += not (goes_on or position in rests)
                goes_on = is_resent
            self.hedges += is_hedge and not is_resent
            self.resends += is_resent
            if source != _STALE:
                self.waited += number(child, "delay") or 0.0
            is_retried = position < last and position + 1 not in rests
            attempts.append(
                SeenAttempt(
                    child,
                    is_success(child, was_retried=is_retried),
                    bool(child.get("superseded")),
                    is_hedge,
                    is_retried,
                    rounds <= 1,
                    _calls(child, level),
                )
            )
        self.resumes = len(rests)
        self.retries = max(0, rounds - 1)
        return tuple(attempts)

    def _count_inside(self) -> None:
        """Add up the calls inside the attempts."""
        attempts = self.attempts
        self.requests = 0
        is_own = self.is_success and any(attempt.is_success for attempt in attempts)
        self.is_success_at_once = is_own and not self.retries
        for number_of_attempt, attempt in enumerate(attempts):
            calls, own = attempt.calls, 1
            if calls:
                own = int(number(attempt.values, "dropped_calls") or 0)
                own += sum(call.requests for call in calls)
                self.retries += sum(call.retries for call in calls)
                self.hedges += sum(call.hedges for call in calls)
                self.resends += sum(call.resends for call in calls)
                self.resumes += sum(call.resumes for call in calls)
                if not all(map(_needed_no_retry, calls)):
                    self.is_success_at_once = False
            self.requests += own
            if number_of_attempt:
                self.extra += own
            else:
                self.extra += sum(call.extra for call in calls)
        self.is_rescued = is_own and not self.is_success_at_once


def _calls(values: Line, level: int) -> tuple[SeenCall, ...]:
    calls = dictionaries(values, "calls") if "calls" in values else ()
    return tuple(SeenCall(call, level + 1) for call in calls)


def _needed_no_retry(call: SeenCall) -> bool:
    """Say whether it was a success at once; one that failed all the same is fine."""
    return call.is_success_at_once or not call.is_success


def _last_of_its_own(children: list[Line]) -> int:
    """Return the position of the last attempt that is no hedge."""
    positions = [n for n, child in enumerate(children) if not _is_hedge(child)]
    return positions[-1] if positions else 0


def _rests(children: list[Line]) -> frozenset[int]:
    """Return the positions of requests for the rest of what the one before brought."""
    return frozenset(
        position
        for position, (part, child) in enumerate(pairwise(children), 1)
        if status_of(part) in _WITH_CONTENT and _is_rest(part, child)
    )


def _is_rest(part: Line, child: Line) -> bool:
    headers = child.get("request_headers")
    if isinstance(headers, dict) and "If-Range" in headers:
        return True
    # Lines need not have headers. Whoever retries says what it waited for.
    return text(part, "delay_source") is None and cause_type(part) is not None


def _is_hedge(values: Line) -> bool:
    return bool(values.get("is_hedge"))
