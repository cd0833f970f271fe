"""Suggest what to change, where numbers of the very place back it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .answers import Hint
from .counts import ratio
from .spending import QUEUE
from .words import count, seconds, share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .evidence import Evidence
    from .steps import Unasked
    from .times import Times

_FEW: Final = 5
"""Fewer of anything are chance."""

_MANY: Final = 20
"""So many calls or attempts show a share."""

_MOST_PLACES: Final = 60

_PART: Final = 0.1
"""The share of the slowest calls' time that is worth a hint."""


class Findings(NamedTuple):
    """The figures behind hints, all without calls that their callers cancelled."""

    evidence: Evidence
    times: Times

    unasked: Unasked
    """Retries at the worst time that no server has asked for."""


def hints(findings: Findings) -> tuple[Hint, ...]:
    """Return the hints that numbers back; none for calls that are well."""
    return tuple(hint for find in _ALL for hint in find(findings))


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
        throttled, of_all = host.throttled, ratio(host.throttled, host.attempts)
        if throttled < _FEW or of_all < 0.01:
            continue
        waited = f", and {seconds(host.waited)} were waited for that"
        rate = "RateLimit.from_headers()"
        if host.told_when < throttled / 2:
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


def _retry_after_too_long(findings: Findings) -> Iterator[Hint]:
    calls = findings.evidence.too_long
    if calls >= _FEW:
        yield Hint(
            "retry_after_too_long",
            f"{count(calls)} calls were given up because the server asked for a longer"
            " wait than is allowed.",
            "max_retry_after=, response_timeout",
            None,
            {"calls": calls},
        )


def _body_not_replayable(findings: Findings) -> Iterator[Hint]:
    calls = findings.evidence.spent_bodies
    if calls >= _FEW:
        yield Hint(
            "body_not_replayable",
            f"{count(calls)} calls could not be tried again because their body was"
            " read by then.",
            "a body of bytes, or a file that can be read again",
            None,
            {"calls": calls},
        )


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
        won = ratio(host.hedges_won, host.hedges)
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
        rescued = ratio(calls.some, calls.all)
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
    _retry_after_too_long,
    _body_not_replayable,
    _unsent_not_retried,
    _hedges_rarely_win,
    _retry_storm,
    _retries_in_vain,
)
