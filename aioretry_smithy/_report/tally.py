"""Add up what calls, failures and endings have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .answers import Ending, Failure, Group
from .counts import ratio, whole
from .table import Sums
from .times import Times
from .values import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .answers import Line
    from .seen_call import SeenAttempt, SeenCall

_MOST_REASONS: Final = 24
_OTHERS: Final = "others"
_LONGEST_REASON: Final = 40


def add_to(counts: dict[str, float], key: str, weight: float) -> None:
    """Count under a key; under "others" where there are too many keys."""
    if key not in counts and len(counts) >= _MOST_REASONS:
        key = _OTHERS
    counts[key] = counts.get(key, 0.0) + weight


def most_first(counts: Mapping[str, float]) -> dict[str, float]:
    """Return counts in order, as whole numbers where they are; equal ones by name."""
    pairs = [(key, whole(value)) for key, value in counts.items()]
    return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def stop_reason(values: Line) -> str | None:
    """Return why a call stopped, if the line says so."""
    reason = text(values, "stop_reason")
    return None if reason is None else reason[:_LONGEST_REASON]


class GroupTally:
    """Adds up the calls of a group."""

    __slots__ = ("attempts", "calls", "reasons", "successes", "times", "waited")

    def __init__(self) -> None:
        self.calls = self.successes = self.attempts = self.waited = 0.0
        self.times = Times()
        self.reasons: dict[str, float] = {}

    @property
    def weight(self) -> float:
        """How many calls there are."""
        return self.calls

    def add(self, call: SeenCall, weight: float) -> None:
        """Add a call; its times apart."""
        self.calls += weight
        self.attempts += weight * len(call.attempts)
        self.waited += weight * call.waited
        if call.is_success:
            self.successes += weight
        else:
            reason = stop_reason(call.values)
            if reason is not None:
                add_to(self.reasons, reason, weight)

    def merge(self, other: GroupTally) -> None:
        """Add what another one has."""
        self.calls += other.calls
        self.successes += other.successes
        self.attempts += other.attempts
        self.waited += other.waited
        self.times.merge(other.times)
        for reason, calls in other.reasons.items():
            add_to(self.reasons, reason, calls)

    def answer(self, key: str, merged: int = 0) -> Group:
        """Return what is shown."""
        return Group(
            key,
            merged,
            whole(self.calls),
            whole(self.successes),
            ratio(self.successes, self.calls),
            whole(self.attempts),
            ratio(self.attempts, self.calls),
            self.times.quantiles(),
            self.waited,
            most_first(self.reasons),
            self.times.parts(),
        )


class FailureTally(Sums):
    """Adds up attempts that failed in the same way."""

    __slots__ = ("attempts", "refused", "refused_by_budget", "retried", "sent")

    attempts: float
    refused: float
    refused_by_budget: float
    retried: float
    sent: float

    def add(
        self,
        attempt: SeenAttempt,
        weight: float,
        *,
        is_refused: bool,
        is_refused_by_budget: bool,
    ) -> None:
        """Add an attempt."""
        self.attempts += weight
        self.sent += weight * bool(attempt.values.get("sent"))
        self.retried += weight * attempt.is_retried
        self.refused += weight * is_refused
        self.refused_by_budget += weight * is_refused_by_budget

    def answer(self, where: str, outcome: str) -> Failure:
        """Return what is shown."""
        return Failure(
            where,
            outcome,
            whole(self.attempts),
            whole(self.sent),
            whole(self.attempts - self.sent),
            whole(self.retried),
            whole(self.refused_by_budget),
            whole(self.refused),
        )


class EndingTally:
    """Counts calls that ended in the same way, and keeps the first."""

    __slots__ = ("calls", "example")

    def __init__(self) -> None:
        self.calls = 0.0
        self.example: Line | None = None

    @property
    def weight(self) -> float:
        """How many calls there are."""
        return self.calls

    def add(self, values: Line, weight: float) -> None:
        """Count a call."""
        self.calls += weight
        if self.example is None:
            self.example = values

    def merge(self, other: EndingTally) -> None:
        """Count what another one has."""
        self.calls += other.calls
        self.example = self.example or other.example

    def answer(self, reason: str | None, outcome: str, example: Line | None) -> Ending:
        """Return what is shown."""
        return Ending(reason, outcome, whole(self.calls), example)
