"""Hints: suggested changes of settings, supported by numbers of the same host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from . import fields
from .answers import Hint, Line, count, seconds, share
from .seen_call import QUEUE, SeenAttempt, SeenCall
from .tally import Times, Unasked, stop_reason

_NEAR: Final = 0.8
"""The share of an attempt's time after which an answer was nearly too late."""

_QUEUED: Final = 0.1
"""The share of a request's time in the pool's queue that counts as congestion."""

_IDEMPOTENT: Final = frozenset(
    {"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "QUERY", "TRACE"}
)
_TIMEOUT: Final = "AttemptTimeoutError"
_NOT_CONNECTED: Final = frozenset(
    {"ClientConnectorError", "ClientProxyConnectionError", "ConnectionTimeoutError"}
)
"""Failures before a request was sent, which may pass: no bad names, certificates."""

_MAY_PASS: Final = frozenset({408, 409, 421, 423, 425, 429})
"""Transient statuses below 500."""

_WHEN: Final = "retry-after", "ratelimit", "x-ratelimit-reset"
_NEVER_PASS: Final = frozenset({501, 505, 511})

Limit: TypeAlias = tuple[str, float]
"""A host, and the time limit of its attempts in seconds."""

Deadline: TypeAlias = tuple[str, float, float]
"""A host, with the time limits of its calls and of their attempts, in seconds."""


def is_near(limit: float, attempt: Line) -> bool:
    """Say whether a server nearly took too long, for the body of an attempt too."""
    took = fields.number(attempt, "total_duration") or fields.number(
        attempt, "duration"
    )
    return took is not None and took - _seconds_queued(attempt) >= _NEAR * limit


@dataclass(slots=True)
class Share(fields.Sums):
    """A number of things, and how many of them have what is looked for."""

    all: float = 0.0
    some: float = 0.0


@dataclass(slots=True)
class HostEvidence(fields.Sums):
    """The counts of the calls and the attempts to one host."""

    attempts: float = 0.0
    hedges: float = 0.0
    hedges_won: float = 0.0
    successes: float = 0.0
    throttled: float = 0.0
    unsent: float = 0.0
    waited: float = 0.0
    with_retry_after: float = 0.0


class Evidence:
    """The counts of all calls, with those inside, for hints."""

    def __init__(self) -> None:
        self.hosts = fields.CountTable[str, HostEvidence](HostEvidence)
        self.timeouts = fields.CountTable[Limit, Share](Share)
        """Attempts that ran into a limit; some answers that nearly did."""

        self.deadlines = fields.CountTable[Deadline, Share](Share)
        """Calls whose deadline left no room for a second attempt."""

        self.refused = fields.CountTable[tuple[str, int], Share](Share)
        """Calls retried after a status, and the calls among them that succeeded."""

        self.stopped = fields.Totals[str]()
        """Calls without success, by the reason of a hint."""

        self.queued = 0.0

    def add(self, call: SeenCall, weight: float) -> None:
        """Look at a call and at those inside."""
        for inside in call.inside:
            self.add(inside, weight)
        if fields.is_cancelled(call.values):
            return
        for attempt in call.attempts:
            self._add_attempt(attempt, weight)
        if len(call.attempts) > 1:
            self._add_together(call, weight)
        if not call.is_success:
            self._add_ending(call, weight)

    def _add_attempt(self, attempt: SeenAttempt, weight: float) -> None:
        values = attempt.values
        name = fields.host_of(values)
        if name is None:
            return
        host = self.hosts.at(name)
        host.attempts += weight
        self.queued += weight * _was_queued(values)
        if attempt.is_superseded:
            return
        limit = fields.number(values, "response_timeout")
        if attempt.is_success:
            host.successes += weight
            if limit and is_near(limit, values):
                self.timeouts.at((name, round(limit, 3))).some += weight
            return
        if _is_throttled(values):
            host.throttled += weight
            host.with_retry_after += weight * _has_retry_after(values)
            if fields.text(values, "delay_source") == "retry_after":
                host.waited += weight * (fields.number(values, "delay") or 0.0)
        elif limit and _is_late(values):
            self.timeouts.at((name, round(limit, 3))).all += weight

    def _add_together(self, call: SeenCall, weight: float) -> None:
        """Look at what the attempts of a call say of each other."""
        attempts = call.attempts
        name = fields.host_of(call.values)
        if name is None:
            return
        if any(attempt.is_superseded for attempt in attempts):
            # A hedge that followed on a failure says nothing of its delay.
            hedges = [attempt for attempt in attempts if attempt.is_hedge]
            host = self.hosts.at(name)
            host.hedges += weight * len(hedges)
            host.hedges_won += weight * sum(map(_has_won, hedges))
        retried = next((each for each in attempts if each.is_retried), None)
        status = None if retried is None else _lasting(retried.values)
        if status is not None:
            share = self.refused.at((name, status))
            share.all += weight
            share.some += weight * call.is_success

    def _add_ending(self, call: SeenCall, weight: float) -> None:
        values = call.values
        reason = stop_reason(values)
        if reason in _STOPPED:
            self.stopped.add([(reason, weight)])
        name = fields.host_of(values)
        if name is None:
            return
        if reason in {None, "no_retry"} and _could_be_sent_again(values):
            self.hosts.at(name).unsent += weight
        deadline = fields.number(values, "response_timeout")
        if reason != "deadline" or not deadline:
            return
        for attempt in call.attempts:
            limit = fields.number(attempt.values, "response_timeout")
            if limit and deadline < 2 * limit and _is_late(attempt.values):
                key = name, round(deadline, 3), round(limit, 3)
                self.deadlines.at(key).all += weight
                return


def _was_queued(values: Line) -> bool:
    """Say whether a request waited long for a connection of the client's own pool."""
    queued = _seconds_queued(values)
    return queued > 0 and queued >= _QUEUED * (fields.number(values, "duration") or 0.0)


def _seconds_queued(values: Line) -> float:
    """Return the seconds in the queue of the client's own pool, 0 if unknown."""
    connection = values.get("connection")
    queued = (
        fields.number(connection, "queued") if isinstance(connection, dict) else None
    )
    return queued or 0.0


def _is_late(values: Line) -> bool:
    """Say whether the server had a request and did not answer it in time."""
    return fields.cause_type(values) == _TIMEOUT and values.get("sent") is not False


def _lasting(values: Line) -> int | None:
    """Return the status of a permanent failure, else None."""
    status = fields.status_of(values)
    if status is None or fields.cause_type(values) is not None or status in _MAY_PASS:
        return None
    return status if 400 <= status < 500 or status in _NEVER_PASS else None


def _could_be_sent_again(values: Line) -> bool:
    """Say whether a non-idempotent request never reached a server."""
    method = fields.text(values, "request_method")
    is_safe = method is None or method.upper() in _IDEMPOTENT
    was_sent = bool(values.get("sent"))
    return not is_safe and not was_sent and fields.cause_type(values) in _NOT_CONNECTED


def _has_won(hedge: SeenAttempt) -> bool:
    return hedge.is_success and not hedge.is_superseded


def _is_throttled(values: Line) -> bool:
    """Say whether the server asked for fewer requests."""
    status = fields.status_of(values)
    return status == 429 or (status == 403 and _has_retry_after(values))


def _has_retry_after(values: Line) -> bool:
    """Say whether an answer has headers that tell when to come back."""
    headers = values.get("response_headers")
    names = map(str, headers) if isinstance(headers, dict) else ()
    return any(name.lower().startswith(_WHEN) for name in names)


_FEW: Final = 5
"""Fewer of anything are chance."""

_MANY: Final = 20
"""The least number of calls or attempts for a meaningful share."""

_MOST_PLACES: Final = 60

_PART: Final = 0.1
"""The share of the slowest calls' time that is worth a hint."""


class Findings(NamedTuple):
    """The figures behind hints, all without calls that their callers cancelled."""

    evidence: Evidence
    times: Times

    unasked: Unasked
    """Retries at the worst time that no server has asked for."""


def hints(findings: Findings) -> list[Hint]:
    """Return the hints that numbers back; none for calls that are well."""
    return [hint for find in _ALL for hint in find(findings)]


def _pool_too_small(findings: Findings) -> Iterator[Hint]:
    part = sum(
        each.slowest_share for each in findings.times.parts() if each.part == QUEUE
    )
    queued = findings.evidence.queued
    if part >= _PART and queued >= _FEW:
        yield Hint(
            "pool_too_small",
            f"{share(part)} of the time of the slowest calls they waited for a"
            f" connection of the client's own pool, as did {count(queued)} requests:"
            " more were under way than it has connections.",
            "aiohttp.TCPConnector(limit=..., limit_per_host=...)",
            None,
            {"slowest_share": part, "queued": queued},
        )


def _throttled(findings: Findings) -> Iterator[Hint]:
    for name, host in findings.evidence.hosts.largest(_MOST_PLACES):
        throttled, of_all = host.throttled, fields.ratio(host.throttled, host.attempts)
        if throttled < _FEW or of_all < 0.01:
            continue
        waited = f", and {seconds(host.waited)} were waited for that"
        rate = "RateLimit.from_headers()"
        if host.with_retry_after < throttled / 2:
            rate = "RateLimit(...)"
        yield Hint(
            "throttled",
            f"{count(throttled)} answers ({share(of_all)}) asked for fewer requests"
            f"{waited if host.waited else ''}: send no faster than the server allows.",
            f"RateLimitingClient.new_decorator({rate})",
            name,
            {"throttled": throttled, "share": of_all, "waited": host.waited},
        )


def _attempt_timeout_too_short(findings: Findings) -> Iterator[Hint]:
    for (name, limit), share_of in findings.evidence.timeouts.largest(_MOST_PLACES):
        late, near = share_of.all, share_of.some
        if late >= _FEW and near >= max(_FEW, 0.2 * late):
            yield Hint(
                "attempt_timeout_too_short",
                f"{count(late)} attempts ran into their timeout of {seconds(limit)},"
                f" and {count(near)} answers came in its last fifth: about as many"
                " would have come a little later.",
                "attempt_timeout=",
                name,
                {"timeouts": late, "near": near, "attempt_timeout": limit},
            )


def _deadline_too_short(findings: Findings) -> Iterator[Hint]:
    table = findings.evidence.deadlines
    for (name, deadline, limit), calls in table.largest(_MOST_PLACES):
        if calls.all >= _FEW:
            yield Hint(
                "deadline_too_short",
                f"{count(calls.all)} calls stopped at their deadline of"
                f" {seconds(deadline)} after an attempt that ran into its timeout of"
                f" {seconds(limit)}: there is no room for another one.",
                "attempt_timeout=, response_timeout",
                name,
                {
                    "calls": calls.all,
                    "response_timeout": deadline,
                    "attempt_timeout": limit,
                },
            )


_STOPPED: Final = {
    "retry_after_too_long": (
        "were given up because the server asked for a longer wait than is allowed.",
        "max_retry_after=, response_timeout",
    ),
    "body_not_replayable": (
        "could not be tried again because their body was read by then.",
        "a body of bytes, or a file that can be read again",
    ),
}
"""The end of the calls and the setting to change, by stop reason."""


def _stopped(findings: Findings) -> Iterator[Hint]:
    for reason, (said, setting) in _STOPPED.items():
        calls = findings.evidence.stopped.get(reason, 0.0)
        if calls >= _FEW:
            what = f"{count(calls)} calls {said}"
            yield Hint(reason, what, setting, None, {"calls": calls})


def _unsent_not_retried(findings: Findings) -> Iterator[Hint]:
    for name, host in findings.evidence.hosts.largest(_MOST_PLACES):
        if _FEW <= host.unsent <= host.successes:
            yield Hint(
                "unsent_not_retried",
                f"{count(host.unsent)} requests such as POST failed before they were"
                " sent and were not tried again, though that would have been safe;"
                f" {count(host.successes)} others succeeded.",
                "RetryStrategy.failsafe() or on_unprocessed()",
                name,
                {"calls": host.unsent, "successes": host.successes},
            )


def _hedges_rarely_win(findings: Findings) -> Iterator[Hint]:
    for name, host in findings.evidence.hosts.largest(_MOST_PLACES):
        won = fields.ratio(host.hedges_won, host.hedges)
        if host.hedges >= _MANY and won < 0.05:
            yield Hint(
                "hedges_rarely_win",
                f"{share(won)} of {count(host.hedges)} hedges won: they could be sent"
                " later.",
                "the delay of HedgingClient",
                name,
                {"hedges": host.hedges, "won": won},
            )


def _retry_storm(findings: Findings) -> Iterator[Hint]:
    unasked = findings.unasked
    if unasked.retries:
        yield Hint(
            "retry_storm",
            f"At the worst time {share(unasked.share)} of the requests were retries"
            " that no server had asked for: they load one that is in trouble.",
            "limiter=RetryBudget() of RetryingClient",
            None,
            {"retries": unasked.retries, "retry_share": unasked.share},
        )


def _retries_in_vain(findings: Findings) -> Iterator[Hint]:
    for (name, status), calls in findings.evidence.refused.largest(_MOST_PLACES):
        rescued = fields.ratio(calls.some, calls.all)
        if calls.all >= _MANY and rescued < 0.05:
            yield Hint(
                "retries_in_vain",
                f"{share(rescued)} of {count(calls.all)} calls that were retried after"
                f" a {status} succeeded: such an answer does not pass.",
                "the strategy of RetryingClient",
                name,
                {"status": status, "retried": calls.all, "rescued": rescued},
            )


_ALL: Final[tuple[Callable[[Findings], Iterator[Hint]], ...]] = (
    _pool_too_small,
    _throttled,
    _attempt_timeout_too_short,
    _deadline_too_short,
    _stopped,
    _unsent_not_retried,
    _hedges_rarely_win,
    _retry_storm,
    _retries_in_vain,
)
