"""Hold the answers of a report: what all its views show.

The names of the fields are the keys of ``Report.to_dict()``, which are published.
Counts weigh sampled lines by 1/rate, so they are whole numbers unless there are such.
Times are seconds, shares are from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Line: TypeAlias = "dict[str, object]"
"""A call as it was written into a line, masked and cleaned of what is no part of it."""


@dataclass(frozen=True, slots=True)
class Input:
    """The lines that were read, and those that could not be used."""

    sources: tuple[str, ...]
    """The names of the files; ``-`` is standard input."""

    by: str
    """The key of groups: host, method, path, endpoint or name."""

    lines: int
    """Lines that were not empty."""

    calls: int
    """Lines that were calls and are counted here; sampled ones once."""

    inside: int
    """Lines of calls that another call made: they are counted with that."""

    left_out: int
    """Calls that ``--since``, ``--until`` or ``--match`` left out."""

    skipped: Mapping[str, int]
    """Lines that were no calls, by reason.

    ``no_json``, ``no_call``, ``attempt``, ``not_nested``, ``several``, ``too_long``,
    ``too_deep``, ``under_way``.
    """

    without_id: int
    """Calls of lines that older versions wrote."""

    unknown_bodies: int
    """Calls with a response of whose body the line does not know the end."""

    sampled: int
    """Calls of lines that say their rate."""

    sampled_by_function: int
    """Calls of lines that a function of the user's chose: these are not weighed."""

    started_at: str | None
    """When the first call began, in UTC."""

    ended_at: str | None
    """When the last call that began had its headers or failed."""

    warnings: tuple[str, ...]
    """The limits of these numbers, in words."""


@dataclass(frozen=True, slots=True)
class Durations:
    """How long calls took to the headers or the failure; None without any."""

    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """How it went, with and without retries."""

    calls: float
    successes: float
    success: float
    """The share of calls that were successes."""

    successes_without_retries: float
    """Calls that were successes without any retry, inside too."""

    success_without_retries: float
    """The share of calls that would have been successes had nothing been retried."""

    successes_by_retries: float
    """Calls that were successes only as they were retried; without those that a
    fallback saved."""

    attempts: float
    """Requests of the calls, all that follow included; a call makes one at least."""

    attempts_per_call: float

    extra_requests: float
    """Requests beyond the first of each call; those of calls inside too."""

    extra_requests_per_call: float

    retries: float
    hedges: float
    resends: float
    """Requests that were sent again because a connection was stale."""

    resumes: float
    """Requests for the rest of a download."""

    duration: Durations


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the time that calls took."""

    part: str
    """The kind of part.

    ``answer``, ``failed_attempt``, ``superseded``, ``connection_queue``, ``dns``,
    ``connect``, ``wait``, ``body`` or ``other``.
    """

    source: str | None
    """The reason for a ``wait``: backoff, retry_after, rate_limit, ..."""

    seconds: float
    share: float
    slowest_seconds: float
    """Those in the slowest 5 % of the calls."""

    slowest_share: float


@dataclass(frozen=True, slots=True)
class Time:
    """Where the time went: in all calls, and in the slowest 5 %."""

    seconds: float
    """All of it."""

    parts: tuple[Part, ...]
    """The largest of the slowest calls first."""

    slowest_calls: float
    slowest_from: float | None
    """How long the quickest of the slowest calls took."""

    slowest_seconds: float

    said: str
    """The parts of the time of the slowest calls, in words."""


@dataclass(frozen=True, slots=True)
class Group:
    """Calls with a common host, method, path, endpoint or name."""

    key: str
    """The value; "others" where :attr:`merged` is not 0."""

    merged: int
    """How many values there are in this group of all that got none of their own."""

    calls: float
    successes: float
    success: float
    attempts: float
    attempts_per_call: float
    duration: Durations
    waited: float
    """Seconds of waits between attempts, and before the first one."""

    stop_reasons: Mapping[str, float]
    """Why calls stopped without success, the most frequent reason first."""

    slowest: tuple[Part, ...]
    """The parts of the time of the slowest 5 % of these calls, the largest first."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Calls without success that ended in the same way."""

    stop_reason: str | None
    """Why nothing was tried again; None where nothing retried."""

    outcome: str
    """The status, or the class of the exception."""

    calls: float
    example: Line | None
    """The first such call."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Attempts to one place that failed in the same way."""

    where: str
    """The endpoint, else the host, else the name of the function."""

    outcome: str
    """The status, the class of the exception, or such as "200, retried"."""

    attempts: float
    sent: float
    """Those that a server may have seen."""

    not_sent: float
    retried: float
    """Those after which another attempt was made."""

    refused_by_budget: float
    """Those after which a limiter, such as a budget, refused another attempt."""

    refused: float
    """Those that a circuit breaker, a limit or a group on this side refused."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The calls that began in a step of time."""

    started_at: str
    calls: float
    failures: float
    attempts: float
    retries: float
    retry_share: float
    """The share of the attempts that were retries."""

    p99: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """The calls by time; steps without calls are left out."""

    step: int
    """Seconds of a step, by the span of all calls: at most 120 steps."""

    said: str
    """The step in words."""

    moments: tuple[Moment, ...]


@dataclass(frozen=True, slots=True)
class Examples:
    """The calls to look at, each as its line."""

    slowest: tuple[Line, ...]
    most_attempts: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Hint:
    """A change that a number suggests."""

    hint: str
    """Its name, which does not change."""

    said: str
    """The number and what it means, in a sentence or two."""

    setting: str
    """The setting that it is about."""

    where: str | None
    """The host or the endpoint, where it is about one."""

    figures: Mapping[str, float]
    """The numbers that back it."""


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers of a report, in the order in which they are shown."""

    v: int
    input: Input
    summary: Summary
    groups: tuple[Group, ...]
    time: Time
    endings: tuple[Ending, ...]
    failures: tuple[Failure, ...]
    timeline: Timeline
    examples: Examples
    hints: tuple[Hint, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the answers as plain JSON values."""
        return {name.name: plain(getattr(self, name.name)) for name in fields(self)}


def plain(value: object) -> object:
    """Return a value with dictionaries and lists in place of other containers."""
    if is_dataclass(value):
        return {name.name: plain(getattr(value, name.name)) for name in fields(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value
