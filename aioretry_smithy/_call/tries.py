"""Look up which endpoints a call has tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._request.endpoint import Endpoint
    from .call import Call
    from .record import Record
    from .route import Route


def tries_of(call: Call, record: Record | None = None) -> dict[Endpoint, int]:
    """Count how often a call has tried endpoints, apart from one request."""
    tries: dict[Endpoint, int] = {}
    for sent in call.sent:
        if sent is not record and sent.route is not None:
            endpoint = sent.route.endpoint
            tries[endpoint] = tries.get(endpoint, 0) + 1
    return tries


def route_of(call: Call, record: Record) -> Route | None:
    """Return where a request went; of a call, where its answer came from."""
    if record is call and call.sent:
        sent = reversed(call.sent)
        record = next((each for each in sent if each.outcome is call.outcome), record)
        return None if record is call else record.route
    return record.route


def has_untried(call: Call, record: Record) -> bool:
    """Say whether a request went to one of several, and another is well and untried."""
    route = record.route
    return route is not None and route.has_other(tries_of(call))
