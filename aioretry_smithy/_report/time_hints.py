"""Suggest what would take the slowest calls less time, where a number backs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .answers import Hint
from .counts import ratio
from .spending import CONNECT, DNS, QUEUE, WAIT
from .words import count, seconds, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .answers import Answers
    from .evidence import Evidence

_FEW: Final = 5
"""Fewer of anything are chance."""

_PART: Final = 0.1
"""The share of the slowest calls' time that is worth a hint."""

_MOST_PLACES: Final = 60


def _slow_share(answers: Answers, part: str, source: str | None = None) -> float:
    return sum(
        each.slowest_share
        for each in answers.time.parts
        if (each.part, each.source) == (part, source)
    )


def pool_too_small(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    """Look for calls that waited for the client's own pool."""
    part = _slow_share(answers, QUEUE)
    if part >= _PART:
        yield Hint(
            "pool_too_small",
            f"{share(part)} of the time of the slowest calls they waited for a"
            " connection of the client's own pool: more calls were under way than it"
            " has connections.",
            "aiohttp.TCPConnector(limit=..., limit_per_host=...)",
            None,
            {"slowest_share": part},
        )


def throttled(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    """Look for servers that ask to come back later."""
    part = _slow_share(answers, WAIT, "retry_after")
    for host, place in evidence.hosts.largest(_MOST_PLACES):
        throttled, of_all = place.throttled, ratio(place.throttled, place.attempts)
        if throttled >= _FEW and (part >= _PART or of_all >= 0.01):
            yield Hint(
                "throttled",
                f"{count(throttled)} answers ({share(of_all)}) asked to come back"
                f" later, and {share(part)} of the time of the slowest calls was waited"
                " for that: send no faster than the server allows.",
                "RateLimitingClient.new_decorator(RateLimit.from_headers())",
                host,
                {"throttled": throttled, "share": of_all, "slowest_share": part},
            )


def attempt_timeout_too_short(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    """Look for answers that came just in time."""
    for host, place in evidence.hosts.largest(_MOST_PLACES):
        if place.timeouts >= _FEW and place.near >= max(_FEW, 0.2 * place.timeouts):
            yield Hint(
                "attempt_timeout_too_short",
                f"{count(place.timeouts)} attempts ran into their timeout of"
                f" {seconds(place.limit)}, and {count(place.near)} answers came in its"
                " last fifth: many would have come a little later.",
                "attempt_timeout=",
                host,
                {
                    "timeouts": place.timeouts,
                    "near": place.near,
                    "attempt_timeout": place.limit,
                },
            )


def no_attempt_timeout(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    """Look for few calls that take very long."""
    times = answers.summary.duration
    if evidence.attempts_with_limit or not times.p50 or times.p99 is None:
        return
    part = _slow_share(answers, "answer") + _slow_share(answers, "failed_attempt")
    is_long = times.p99 >= max(1.0, 20 * times.p50)
    if is_long and part >= 0.5 and answers.summary.calls >= 100:
        yield Hint(
            "no_attempt_timeout",
            f"Half of the calls took {seconds(times.p50)}, one in a hundred"
            f" {seconds(times.p99)} or more, and {share(part)} of the time of the"
            " slowest was spent in attempts, which have no timeout of their own.",
            "attempt_timeout= of RetryingClient, or HedgingClient",
            None,
            {"p50": times.p50, "p99": times.p99, "slowest_share": part},
        )


def deadline_too_short(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    """Look for calls whose attempts did not fit in."""
    stopped = evidence.deadlines_in_timeouts
    if stopped >= _FEW:
        yield Hint(
            "deadline_too_short",
            f"{count(stopped)} calls stopped at their deadline after attempts that ran"
            " into their timeout: the deadline is shorter than the attempts that it"
            " should hold.",
            "response_timeout, attempt_timeout=, max_total_attempts=",
            None,
            {"calls": stopped},
        )


def connections(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    """Look for connections that are opened again and again."""
    opened = ratio(evidence.connections_opened, evidence.connections)
    part = _slow_share(answers, CONNECT)
    if part >= _PART and opened >= 0.2:
        yield Hint(
            "connections_not_kept",
            f"{share(opened)} of the requests opened a connection, and {share(part)} of"
            " the time of the slowest calls they connected.",
            "one session for all calls; aiohttp.TCPConnector(keepalive_timeout=...)",
            None,
            {"opened": opened, "slowest_share": part},
        )
    part = _slow_share(answers, DNS)
    if part >= _PART:
        yield Hint(
            "slow_dns",
            f"{share(part)} of the time of the slowest calls went to DNS.",
            "aiohttp.TCPConnector(ttl_dns_cache=...)",
            None,
            {"slowest_share": part},
        )


def long_backoff(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    """Look for waits that may be longer than needed."""
    part = _slow_share(answers, WAIT, "backoff")
    rescued = ratio(evidence.rescued, evidence.retried)
    if part >= 0.4 and evidence.retried >= 20 and rescued >= 0.9:
        yield Hint(
            "long_backoff",
            f"{share(part)} of the time of the slowest calls was waited by the backoff,"
            f" and {share(rescued)} of the calls that were retried succeeded.",
            "a shorter first delay of Backoff",
            None,
            {"slowest_share": part, "rescued": rescued},
        )


def unknown_bodies(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    """Look for lines that were written before the body."""
    unknown = answers.input.unknown_bodies
    part = ratio(unknown, answers.input.calls)
    if part >= 0.5:
        yield Hint(
            "bodies_unknown",
            f"Of {share(part)} of the calls the lines do not know whether the body came"
            " whole.",
            'LoggingClient.new_decorator(log_after="body")',
            None,
            {"calls": float(unknown), "share": part},
        )
