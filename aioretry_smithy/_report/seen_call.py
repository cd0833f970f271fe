"""A saved call as the report sees it: attempts, nested calls, time spent."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from .._log.saved_log import dictionaries
from .fields import (
    Totals,
    bucket_of,
    cause_type,
    is_success,
    moment,
    number,
    status_of,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    """A request of a call, or the call itself if it has no attempts."""

    values: Line
    is_success: bool
    is_superseded: bool
    is_hedge: bool

    is_retried: bool
    """Whether an attempt followed that was no hedge, no resend and no part."""

    calls: tuple[SeenCall, ...]
    """The calls that were made inside."""


class SeenCall:
    """A saved call, with sums over its attempts.

    Args:
        values: Its line, or a part of one.
        level: How many calls it is made inside of.

    Raises:
        TooDeepError: Calls inside it are nested too deep.
    """

    attempts: tuple[SeenAttempt, ...]

    inside: list[SeenCall]
    """The calls made inside its attempts."""

    duration: float | None
    """Seconds to the headers or the failure, if they are known."""

    bucket: int
    """The histogram bucket of the duration."""

    is_success: bool

    is_rescued: bool
    """Whether the call succeeded only by retries or a fallback."""

    is_success_at_once: bool
    """Whether the call succeeded without any retry, including nested calls."""

    requests: int
    """Requests of it and of the calls inside; a function makes those of its calls."""

    extra: int
    """Requests beyond one for the call itself and for each call inside."""

    retries: int
    """Attempts after the first, also of nested calls, except for:"""

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
                SeenAttempt(values, self.is_success, False, False, False, calls),
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
                    _calls(child, level),
                )
            )
        self.resumes = len(rests)
        self.retries = max(0, rounds - 1)
        return tuple(attempts)

    def _count_inside(self) -> None:
        """Add up the calls inside the attempts."""
        attempts = self.attempts
        self.inside = [call for attempt in attempts for call in attempt.calls]
        is_own = self.is_success and any(attempt.is_success for attempt in attempts)
        no_retry = not self.retries and all(map(_needed_no_retry, self.inside))
        self.is_success_at_once = is_own and no_retry
        self.is_rescued = is_own and not no_retry
        self.retries += sum(call.retries for call in self.inside)
        self.hedges += sum(call.hedges for call in self.inside)
        self.resends += sum(call.resends for call in self.inside)
        self.resumes += sum(call.resumes for call in self.inside)
        requests = [_requests_of(attempt) for attempt in attempts]
        self.requests = sum(requests)
        first = attempts[0].calls if attempts else ()
        self.extra += sum(requests[1:]) + sum(call.extra for call in first)


def _requests_of(attempt: SeenAttempt) -> int:
    """Return the requests of an attempt: its own, or those of the calls inside."""
    if not attempt.calls:
        return 1
    dropped = int(number(attempt.values, "dropped_calls") or 0)
    return dropped + sum(call.requests for call in attempt.calls)


def _calls(values: Line, level: int) -> tuple[SeenCall, ...]:
    calls = dictionaries(values, "calls") if "calls" in values else ()
    return tuple(SeenCall(call, level + 1) for call in calls)


def _needed_no_retry(call: SeenCall) -> bool:
    """Say whether retries made no difference: success at once, or failure anyway."""
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


ANSWER: Final = "answer"
FAILED: Final = "failed_attempt"
SUPERSEDED: Final = "superseded"
QUEUE: Final = "connection_queue"
DNS: Final = "dns"
CONNECT: Final = "connect"
BODY: Final = "body"
OTHER: Final = "other"
WAIT: Final = "wait"

Part: TypeAlias = "tuple[str, str | None]"
"""The kind of a part of a call's time, and the reason of a wait."""

_REASONS: Final = frozenset(
    "backoff circuit_breaker endpoint rate_limit retry_after".split()
)

_RANKS: Final = {
    ANSWER: 7,
    FAILED: 6,
    SUPERSEDED: 5,
    CONNECT: 4,
    DNS: 4,
    QUEUE: 4,
    BODY: 3,
}
"""The highest counts where parts overlap; waits and the rest count least."""

_LEVEL: Final = 10
"""The rank of nesting: nested requests count in place of the attempt around."""

_NO_TIME: Final = 1e-9


class _Span(NamedTuple):
    """A time with a beginning and an end on the axis of the call."""

    start: float
    end: float
    part: Part
    rank: int


def spending(call: SeenCall) -> dict[Part, float]:
    """Return the seconds that each part of a call took; together, all of its time.

    Its time goes to the end of the body, where the line knows it.
    """
    values = call.values
    duration = call.duration or 0.0
    end = max(duration, number(values, "total_duration") or 0.0)
    sheet = _TimeSheet(_origin(call), end)
    sheet.add_call(call, 0.0, end, 0)
    return sheet.seconds()


def _origin(call: SeenCall) -> float:
    """Return when a call began; where that is not known, when its first attempt did."""
    moments = (moment(values) for values in (call.values, call.attempts[0].values))
    return next((each for each in moments if each is not None), 0.0)


class _TimeSheet:
    """Gathers the spans of a call, then adds them up.

    Args:
        origin: The moment where its axis begins.
        end: The second where it ends.
    """

    def __init__(self, origin: float, end: float) -> None:
        self.origin = origin
        self.end = end
        self.spans: list[_Span] = []

    def seconds(self) -> dict[Part, float]:
        """Add up the spans, each moment once, and what is left."""
        parts = Totals[Part]().add(_painted(self.spans))
        rest = self.end - sum(parts.values())
        if rest > ROUNDED:
            parts.add([((OTHER, None), rest)])
        return parts

    def add_call(self, call: SeenCall, start: float, end: float, level: int) -> None:
        """Add what a call did between two seconds of the axis."""
        values, attempts = call.values, call.attempts
        delay = number(values, "delay") or 0.0
        if attempts[0].values is values:
            self._add_wait(values, start, start + delay, level)
            self._add_attempt(attempts[0], start + delay, end, level, delay)
            return
        starts = [self._start(attempt.values, start) for attempt in attempts]
        self._add_wait(values, max(start, starts[0] - delay), starts[0], level)
        took = call.duration
        over = end if took is None else min(end, start + took)
        following = _following(attempts, starts, over)
        for attempt, begun, until in zip(attempts, starts, following, strict=True):
            wait = until - (number(attempt.values, "delay") or 0.0)
            # The body of the last one comes after the call had its headers.
            latest = end if attempt is attempts[-1] else max(begun, wait)
            last = self._add_attempt(attempt, begun, latest, level)
            self._add_wait(attempt.values, max(last, wait), until, level)

    def _start(self, values: Line, otherwise: float) -> float:
        started = moment(values)
        return otherwise if started is None else started - self.origin

    def _add_attempt(
        self,
        attempt: SeenAttempt,
        start: float,
        latest: float,
        level: int,
        waited: float = 0.0,
    ) -> float:
        """Add an attempt; return its end, including the body."""
        values = attempt.values
        duration = number(values, "duration")
        over = latest if duration is None else min(latest, start + duration - waited)
        for call in attempt.calls:
            begun = self._start(call.values, start)
            took = number(call.values, "total_duration") or call.duration or 0.0
            self.add_call(call, begun, min(latest, begun + took), level + 1)
        sent = self._add_connection(values, start, over, level)
        self._add(sent, over, _part_of(attempt), level)
        total = number(values, "total_duration") or 0.0
        body_end = min(start + total - waited, latest)
        self._add(over, body_end, BODY, level)
        return max(over, body_end)

    def _add_connection(
        self, values: Line, start: float, over: float, level: int
    ) -> float:
        """Add the time spent on getting a connection; return when it was ready."""
        connection = values.get("connection")
        if not isinstance(connection, dict):
            return start
        for part, key in ((QUEUE, "queued"), (DNS, "dns"), (CONNECT, "connect")):
            end = min(over, start + (number(connection, key) or 0.0))
            self._add(start, end, part, level)
            start = max(start, end)
        return start

    def _add_wait(self, values: Line, start: float, end: float, level: int) -> None:
        if end - start > _NO_TIME:
            source = text(values, "delay_source")
            reason = source if source in _REASONS else OTHER
            self._add(start, end, WAIT, level, reason)

    def _add(
        self, start: float, end: float, kind: str, level: int, reason: str | None = None
    ) -> None:
        start, end = max(start, 0.0), min(end, self.end)
        if end - start > _NO_TIME:
            rank = level * _LEVEL + _RANKS.get(kind, 2)
            self.spans.append(_Span(start, end, (kind, reason), rank))


def _part_of(attempt: SeenAttempt) -> str:
    if attempt.is_superseded:
        return SUPERSEDED
    return ANSWER if attempt.is_success else FAILED


def _following(
    attempts: Sequence[SeenAttempt], starts: list[float], last: float
) -> list[float]:
    """Return for each attempt when the next one that is no hedge began."""
    found = []
    for attempt, start in zip(reversed(attempts), reversed(starts), strict=True):
        found.append(last)
        last = last if attempt.is_hedge else start
    return found[::-1]


def _painted(spans: Iterable[_Span]) -> Iterable[tuple[Part, float]]:
    """Yield the seconds of parts, those of what ranks highest at each moment."""
    waiting = sorted(spans, key=lambda span: span.start, reverse=True)
    moments = sorted({each for span in waiting for each in (span.start, span.end)})
    open_spans: list[tuple[int, float, Part]] = []
    for start, end in pairwise(moments):
        while waiting and waiting[-1].start <= start:
            span = waiting.pop()
            heappush(open_spans, (-span.rank, -span.end, span.part))
        while open_spans and -open_spans[0][1] <= start:
            heappop(open_spans)
        if open_spans:
            yield open_spans[0][2], end - start
