"""Judge what a failure says of a server: that it is busy, or that it restarted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from .._failures.failure import failure_of
from .._failures.frames import as_headers
from .._failures.hints import retry_after

if TYPE_CHECKING:
    from .call import Call
    from .record import Record


THROTTLING: Final = frozenset({429, 503})
"""The statuses by which a server throttles, if it says when to come back."""


def is_throttled(call: Call, record: Record, cause: Exception | None) -> bool:
    """Say whether the server asks to come back later: too many requests, no outage.

    That is a 429 or a 503 with a ``Retry-After`` that can be read, also one that was
    raised, or an exception with Smithy's ``is_throttling_error`` and ``retry_after``.

    Args:
        call: The call.
        record: That of the call, or of the attempt.
        cause: What it failed with, or None when there is a response.
    """
    failure = failure_of(cause)
    if failure.info.is_throttling_error:
        return failure.hint() is not None
    is_one = status_judged(record, cause) in THROTTLING
    return is_one and asked_for(call, record, cause) is not None


def status_judged(record: Record, cause: Exception | None) -> int | None:
    """Return the status of a server that an outcome is judged by; None without one."""
    if cause is None:
        return record.outcome.status
    return failure_of(cause).status_of_server


def asked_for(call: Call, record: Record, cause: Exception | None) -> float | None:
    """Return the seconds for which an answer asks to be left alone, if it does."""
    now = call.wall_clock + record.started - call.started
    if cause is not None:
        return failure_of(cause).hint(now)
    headers = record.outcome.headers
    return None if headers is None else retry_after(as_headers(headers), now=now)


class FailedAttempt(NamedTuple):
    """When a failed attempt began and when it failed, and whether a connection broke.

    Both are seconds of the event loop's clock.
    """

    began: float
    failed: float
    is_break: bool

    @classmethod
    def of(cls, call: Call, record: Record, cause: Exception | None) -> FailedAttempt:
        """Look at an attempt, or at a call, whose last attempt it is then about."""
        failed = failed_at(call, record, cause)
        if cause is None or not failure_of(cause).broke_connection:
            return cls(record.started, failed, is_break=False)
        return cls(ended_with(call, record).started, failed, is_break=True)


def failed_at(call: Call, record: Record, cause: Exception | None) -> float:
    """Return when a failure came, or the headers of an answer that is one."""
    outcome = record.outcome
    failed = outcome.ended if cause is None else outcome.body_ended
    # Unknown where a decorator of the user's own has raised it.
    return call.loop.time() if failed is None else failed


def ended_with(call: Call, record: Record) -> Record:
    """Return the request that a call has ended with, if any; other records as is."""
    if record is not call:
        return record
    requests = (each for each in call.sent if each.outcome is record.outcome)
    return next(requests, call)


class Rounds:
    """Tells whether a failure is to be counted, for what is shared by many calls.

    A restart cuts all the connections of a server at once, which is one failure. So a
    broken connection is not counted if its attempt began before the last failure that
    was. All others are counted each.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = -math.inf

    def count(self, failure: FailedAttempt) -> bool:
        """Say whether to count a failure, and remember when one that counts was."""
        # Not "<=": by a coarse clock a retry may begin at the time of the failure.
        if failure.is_break and failure.began < self._last:
            return False
        self._last = max(self._last, failure.failed)
        return True
