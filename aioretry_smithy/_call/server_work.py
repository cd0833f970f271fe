"""Judge what a failure has cost the server: nothing, or much of its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._failures.failure import failure_of
from .rounds import ended_with, failed_at, is_throttled, status_judged

if TYPE_CHECKING:
    from .call import Call
    from .record import Record

QUICK: Final = 1.0
"""Seconds from sending within which a failure is quick; from then on it is slow."""

_UNSERVED: Final = frozenset({502, 503})
"""The statuses of a gateway without its server, or of a server that turns it down."""


def is_unserved(call: Call, record: Record, cause: Exception | None) -> bool:
    """Say whether the server did no work for a request that failed.

    It was not reached, however long that took to learn. Or the request was sent, and
    within a second its connection broke before an answer, or the answer was 502 or 503.
    An answer that says when to come back is that of a busy server.

    Args:
        call: The call.
        record: That of the call, whose last request it is then about, or of an attempt.
        cause: What it failed with, or None when there is a response.
    """
    status = status_judged(record, cause)
    if status is None:
        failure = failure_of(cause)
        if failure.is_unprocessed:
            return True
        is_one = failure.broke_connection and record.outcome.status is None
    else:
        is_one = status in _UNSERVED
    is_quick = is_one and _seconds(call, record, cause) < QUICK
    return is_quick and not is_throttled(call, record, cause)


def is_slow(call: Call, record: Record, cause: Exception | None) -> bool:
    """Say whether a failure took a server long: a timeout, or a second and more.

    Args:
        call: As for :func:`is_unserved`.
        record: As for :func:`is_unserved`.
        cause: As for :func:`is_unserved`.
    """
    failure = failure_of(cause)
    if failure.kind.is_timeout or failure.info.is_timeout_error:
        return True
    return _seconds(call, record, cause) >= QUICK


def _seconds(call: Call, record: Record, cause: Exception | None) -> float:
    """Return the seconds from sending to a failure, or to the headers of an answer."""
    return failed_at(call, record, cause) - ended_with(call, record).sent_at
