"""Count the tries of a call at each server, and find the request that ended a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import UnprocessedRequestError
from .._failures.failure import failure_of, peel
from .._failures.hints import attribute_of
from .server_work import UNAVAILABLE, asked_for, status_judged

if TYPE_CHECKING:
    from .._request.endpoint import Endpoint
    from .call import Call, Context
    from .record import Record, Route


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
