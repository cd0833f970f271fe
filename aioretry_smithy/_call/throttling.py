"""Tell an answer that says when to come back from a failure of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .._failures.hints import retry_after
from .._failures.retry_info import RetryInfo
from .._failures.safety import peel

if TYPE_CHECKING:
    from .call import Call
    from .record import Record

THROTTLING: Final = frozenset({429, 503})
"""The statuses by which a server throttles, if it says when to come back."""


def is_throttled(call: Call, record: Record, cause: Exception | None) -> bool:
    """Say whether the server asks to come back later: too many requests, no outage.

    That is a 429 or a 503 with a ``Retry-After`` that can be read, or an exception with
    Smithy's ``is_throttling_error`` and ``retry_after``.

    Args:
        call: The call.
        record: That of the call, or of the attempt.
        cause: What it failed with, or None when there is a response.
    """
    if cause is not None:
        info = RetryInfo.of(peel(cause))
        return info.is_throttling_error and info.retry_after is not None
    outcome = record.outcome
    if outcome.status not in THROTTLING:
        return False
    headers: Any = outcome.headers
    now = call.wall_clock + record.started - call.started
    return retry_after(headers, now=now) is not None
