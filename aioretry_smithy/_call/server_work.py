"""Judge what a failure says of a server: throttling, not reached, slow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from .._failures.failure import Failure, failure_of, peel
from .._failures.hints import as_headers, retry_after

if TYPE_CHECKING:
    from .call import Call, Context
    from .outcome import Outcome
    from .record import Record


THROTTLING: Final = frozenset({429, 503})
"""The statuses by which a server throttles, if it says when to come back."""

UNAVAILABLE: Final = 503
"""The status with a ``Retry-After`` of a single server."""


def is_throttled(ctx: Context, cause: Exception | None) -> bool:
    """Say whether the server asks to come back later: too many requests, no outage.

    That is a 429 or a 503 with a ``Retry-After`` that can be read, also one that was
    raised, or an exception with Smithy's ``is_throttling_error`` and ``retry_after``.

    Args:
        ctx: The context of the call, or of the attempt.
        cause: What it failed with, or None when there is a response.
    """
    failure, outcome = failure_of(cause), ctx.record.outcome
    if failure.info.is_throttling_error:
        return failure.hint() is not None
    is_one = status_judged(outcome, cause) in THROTTLING
    return is_one and asked_for(ctx.call, outcome, cause) is not None


def status_judged(outcome: Outcome, cause: Exception | None) -> int | None:
    """Return the status of a server that an outcome is judged by; None without one."""
    if cause is None:
        return outcome.status
    return failure_of(cause).status_of_server


def time_of_failure(call: Call, outcome: Outcome, cause: Exception | None) -> float:
    """Return the time of day of a failure, from which a server's hint counts."""
    return call.wall_clock + failed_at(call, outcome, cause) - call.started


def asked_for(call: Call, outcome: Outcome, cause: Exception | None) -> float | None:
    """Return the wait in seconds that an answer asks for, if any."""
    now = time_of_failure(call, outcome, cause)
    if cause is not None:
        return failure_of(cause).hint(now)
    headers = outcome.headers
    return None if headers is None else retry_after(as_headers(headers), now=now)


def failed_at(call: Call, outcome: Outcome, cause: Exception | None) -> float:
    """Return when a failure came, or the headers of an answer that is one."""
    failed = outcome.ended if cause is None else outcome.body_ended
    # Unknown where a decorator of the user's own has raised it.
    return call.loop.time() if failed is None else failed


def _request_of(ctx: Context) -> Record:
    """Return the request of an attempt, or the one that a call has ended with."""
    call, record = ctx.call, ctx.record
    if record is not call:
        return record
    requests = (each for each in call.sent if each.outcome is record.outcome)
    return next(requests, call)


class Rounds:
    """Says whether to count a failure, where one state is shared by many calls.

    A restart cuts all the connections of a server at once, which is one failure. So a
    broken connection is not counted if its attempt began before the last failure that
    was. All others are counted each.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = -math.inf

    def count(self, ctx: Context, cause: Exception | None) -> bool:
        """Say whether to count a failure, and remember when one that counts was."""
        is_break = cause is not None and failure_of(cause).broke_connection
        # Not "<=": by a coarse clock a retry may begin at the time of the failure.
        if is_break and _request_of(ctx).started < self._last:
            return False
        failed = failed_at(ctx.call, ctx.record.outcome, cause)
        self._last = max(self._last, failed)
        return True


QUICK: Final = 1.0
"""Seconds from sending within which a failure is quick; from then on it is slow."""

_UNSERVED: Final = frozenset({502, 503})
"""The statuses of a gateway without its server, or of a server that turns it down."""


def is_unserved(ctx: Context, cause: Exception | None) -> bool:
    """Say whether the server did no work for a request that failed.

    It was not reached, however long that took to learn. Or the request was sent, and
    within a second its connection broke before an answer, or the answer was 502 or 503.
    What a function raises because its connection was refused is as quick.
    An answer that says when to come back is that of a busy server.

    Args:
        ctx: That of the call, whose last request it is then about, or of an attempt.
        cause: What it failed with, or None when there is a response.
    """
    outcome = ctx.record.outcome
    status = status_judged(outcome, cause)
    if status is None:
        failure = failure_of(cause)
        if failure.is_unprocessed:
            return True
        is_one = _found_nobody(failure, cause) and outcome.status is None
    else:
        is_one = status in _UNSERVED
    is_quick = is_one and _seconds(ctx, cause) < QUICK
    return is_quick and not is_throttled(ctx, cause)


def _found_nobody(failure: Failure, cause: Exception | None) -> bool:
    """Say whether a connection broke, or whether one of a function was refused.

    That may have been the second one of the function, so it is not surely unprocessed.
    """
    if cause is None or failure.raised_by_caller:
        return False
    is_refused = isinstance(peel(cause), ConnectionRefusedError)
    return is_refused or failure.broke_connection


def is_slow(ctx: Context, cause: Exception | None) -> bool:
    """Say whether a failure took a server long: a timeout, or a second and more.

    Args:
        ctx: As for :func:`is_unserved`.
        cause: As for :func:`is_unserved`.
    """
    failure = failure_of(cause)
    if failure.kind.is_timeout or failure.info.is_timeout_error:
        return True
    return _seconds(ctx, cause) >= QUICK


def _seconds(ctx: Context, cause: Exception | None) -> float:
    """Return the seconds from sending to a failure, or to the headers of an answer."""
    failed = failed_at(ctx.call, ctx.record.outcome, cause)
    return failed - _request_of(ctx).sent_at
