"""Servers of a call: how often each was tried, and what its failures say of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from .._errors import UnprocessedRequestError
from .._failures.failure import Failure, failure_of, peel
from .._failures.hints import as_headers, attribute_of, retry_after

if TYPE_CHECKING:
    from .._request.endpoint import Endpoint
    from .._request.request import Route
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


def tries_of(call: Call, record: Record | None = None) -> dict[Endpoint, int]:
    """Count how often a call has tried endpoints, apart from one request.

    For a further part of the body all of them are new.
    """
    tries: dict[Endpoint, int] = {}
    for sent in call.sent:
        is_of_part = sent.number > call.tries_before
        if is_of_part and sent is not record and sent.route is not None:
            endpoint = sent.route.endpoint
            tries[endpoint] = tries.get(endpoint, 0) + 1
    return tries


def rests_of(call: Call) -> dict[Endpoint, float]:
    """Return until when each endpoint that a call has tried asks for no requests.

    By their last answers, each a 503 that says so. In seconds of the loop's clock.
    """
    rests: dict[Endpoint, float] = {}
    for sent in call.sent:
        outcome, route = sent.outcome, sent.route
        if route is None or sent.number <= call.tries_before or outcome.ended is None:
            continue
        rests.pop(route.endpoint, None)
        cause = outcome.cause if outcome.status is None else None
        cause = cause if isinstance(cause, Exception) else None
        if status_judged(outcome, cause) == UNAVAILABLE:
            asked = asked_for(call, outcome, cause)
            if asked:
                rests[route.endpoint] = outcome.ended + asked
    return rests


def route_of(call: Call, record: Record) -> Route | None:
    """Return the endpoint of a request; of a call, the endpoint that answered."""
    if record is call and call.sent:
        last, sent = call.outcome.part or call.outcome, reversed(call.sent)
        record = next((each for each in sent if each.outcome is last), record)
        return None if record is call else record.route
    return record.route


def last_of(call: Call, record: Record) -> Record:
    """Return the request that gave a call its outcome; of a request, the request."""
    if record is not call or not call.sent:
        return record
    last = call.outcome.part or call.outcome
    sent = [each for each in call.sent if each.outcome is last]
    return (sent or call.sent)[-1]


def has_untried(ctx: Context) -> bool:
    """Say whether a request went to one of several, and another is well and untried."""
    route = ctx.record.route
    return route is not None and route.has_other(tries_of(ctx.call))


def is_unsent(cause: BaseException) -> bool:
    """Say whether a request did not reach one of several servers.

    Not where something that they share refused it: a limit, the pool, or a proxy.
    """
    if attribute_of(cause, "is_of_endpoint"):
        return True
    failure = failure_of(cause)
    is_ours = isinstance(cause, UnprocessedRequestError) or failure.queue is not None
    return failure.is_unprocessed and not (is_ours or failure.is_of_proxy)


def is_of_one_server(ctx: Context, cause: Exception | None) -> bool:
    """Say whether a failure is that of one of several servers, and no outage.

    The request did not reach it, it is ejected by now, and another one is well that
    was not tried. Where all fail, most of them cannot be ejected.
    """
    route = ctx.record.route
    if route is None or cause is None or not route.is_out:
        return False
    return is_unsent(peel(cause)) and has_untried(ctx)
