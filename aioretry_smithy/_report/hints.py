"""Suggest what to change, where a number backs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .answers import Hint
from .counts import ratio
from .time_hints import (
    attempt_timeout_too_short,
    connections,
    deadline_too_short,
    long_backoff,
    no_attempt_timeout,
    pool_too_small,
    throttled,
    unknown_bodies,
)
from .words import count, counted, share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .answers import Answers
    from .evidence import Evidence

_FEW: Final = 5
"""Fewer of anything are chance."""

_MOST_PLACES: Final = 60

_UNEVEN: Final = 3.0
"""How many times as often as the others an endpoint must fail."""


def hints(answers: Answers, evidence: Evidence) -> tuple[Hint, ...]:
    """Return the hints that numbers back; none for calls that are well."""
    return tuple(hint for find in _ALL for hint in find(answers, evidence))


def _stopped(
    reason: str, name: str, text: str, setting: str
) -> Callable[[Answers, Evidence], Iterator[Hint]]:
    """Make what looks for calls that stopped for a reason."""

    def find(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
        calls = evidence.reasons.get(reason, 0.0)
        if calls >= _FEW:
            figures = {"calls": calls}
            yield Hint(name, f"{counted(calls, 'call')} {text}", setting, None, figures)

    return find


def _never_sent(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    if evidence.unsent >= _FEW:
        yield Hint(
            "unsent_not_retried",
            f"{count(evidence.unsent)} requests such as POST failed before they were"
            " sent and were not tried again, though that would have been safe.",
            "RetryStrategy.failsafe() or on_unprocessed()",
            None,
            {"calls": evidence.unsent},
        )


def _hedges(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    sent, won = evidence.hedges, ratio(evidence.hedges_won, evidence.hedges)
    if sent < 20 or 0.05 <= won <= 0.5:
        return
    name, meaning = "hedges_rarely_win", "they could be sent later"
    if won > 0.5:
        name, meaning = "hedges_mostly_win", "they could be sent earlier"
    yield Hint(
        name,
        f"{share(won)} of {count(sent)} hedges won: {meaning}.",
        "the delay of HedgingClient",
        None,
        {"hedges": sent, "won": won},
    )


def _uneven_endpoints(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    places = evidence.endpoints.largest(_MOST_PLACES)
    attempts = sum(place.attempts for _, place in places)
    failures = sum(place.failures for _, place in places)
    for endpoint, place in places:
        own = ratio(place.failures, place.attempts)
        others = ratio(failures - place.failures, attempts - place.attempts)
        has_others = attempts - place.attempts >= 20
        if has_others and place.failures >= _FEW and own > max(0.01, _UNEVEN * others):
            yield Hint(
                "endpoint_fails",
                f"{share(own)} of the attempts at this endpoint failed, of those at the"
                f" others {share(others)}.",
                "OutlierDetection, HealthCheckedEndpointGroup",
                endpoint,
                {"failures": own, "failures_of_others": others},
            )


def _storms(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    storms = answers.timeline.storms
    if storms:
        worst = max(storms, key=lambda storm: storm.retry_share)
        yield Hint(
            "retry_storm",
            f"At times {share(worst.retry_share)} of the requests were retries:"
            " they load a server that is in trouble.",
            "limiter=RetryBudget() of RetryingClient",
            None,
            {"storms": float(len(storms)), "retry_share": worst.retry_share},
        )


def _in_vain(answers: Answers, evidence: Evidence) -> Iterator[Hint]:
    rescued = ratio(evidence.rescued, evidence.retried)
    if evidence.retried >= 20 and rescued < 0.2:
        yield Hint(
            "retries_in_vain",
            f"{share(rescued)} of {count(evidence.retried)} calls that were retried"
            " succeeded: what they fail with does not pass, or not so soon.",
            "the strategy, or the backoff, of RetryingClient",
            None,
            {"retried": evidence.retried, "rescued": rescued},
        )


_ALL: Final[tuple[Callable[[Answers, Evidence], Iterator[Hint]], ...]] = (
    pool_too_small,
    throttled,
    attempt_timeout_too_short,
    no_attempt_timeout,
    deadline_too_short,
    _stopped(
        "retry_after_too_long",
        "retry_after_too_long",
        "were given up because the server asked for a longer wait than is allowed.",
        "max_retry_after=, response_timeout",
    ),
    _stopped(
        "body_not_replayable",
        "body_not_replayable",
        "could not be tried again because their body was read by then.",
        "a body of bytes, or a file that can be read again",
    ),
    _stopped(
        "limiter",
        "budget_used_up",
        "were given up because the budget for retries was used up.",
        "RetryBudget: look at the server first",
    ),
    _stopped(
        "refused",
        "refused_here",
        "were refused on this side, by a circuit breaker or a limit.",
        "CircuitBreaker, ConcurrencyLimit: look at the server first",
    ),
    _never_sent,
    _hedges,
    _uneven_endpoints,
    connections,
    _storms,
    _in_vain,
    long_backoff,
    unknown_bodies,
)
