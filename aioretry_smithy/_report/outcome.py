"""Say how a call or an attempt ended, as far as its line tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .folding import place_of
from .values import number, text

if TYPE_CHECKING:
    from .answers import Line

_LONGEST_NAME: Final = 80

_REFUSALS: Final = frozenset(
    {
        "ConcurrencyLimitError",
        "EmptyEndpointGroupError",
        "EndpointGroupError",
        "EndpointSelectionTimeoutError",
        "FailFastError",
        "RateLimitError",
    }
)
"""The exceptions of decorators that refuse a request on this side."""


def cause_type(values: Line) -> str | None:
    """Return the name of the class of the exception, if it failed with one."""
    name = text(values, "response_cause_type")
    if name is None:
        # Older lines have the text alone.
        cause = text(values, "response_cause")
        name = None if cause is None else cause.partition(":")[0]
    return None if name is None else name[:_LONGEST_NAME]


def status_of(values: Line) -> int | None:
    """Return the status, or None without a response."""
    status = number(values, "response_status")
    return None if status is None else int(status)


def is_success(values: Line, *, was_retried: bool = False) -> bool:
    """Say whether it was a success; older lines do not say so themselves."""
    known = values.get("is_success")
    if isinstance(known, bool):
        return known
    status = status_of(values)
    return (
        not was_retried
        and cause_type(values) is None
        and (status is None or status < 400)
        and text(values, "stop_reason") is None
    )


def outcome_of(values: Line) -> str:
    """Name the outcome of what was no success.

    >>> outcome_of({"response_status": 503})
    '503'
    >>> outcome_of({"response_status": 200})
    '200, retried'
    """
    status, cause = status_of(values), cause_type(values)
    if status is None:
        return cause or "no response"
    if status >= 400:
        return str(status)
    # Its content said that it failed, or it would be a success.
    return f"{status}, {cause or 'retried'}"


def is_cancelled(values: Line) -> bool:
    """Say whether the caller gave it up."""
    reason, cause = text(values, "stop_reason"), cause_type(values)
    return reason == "cancelled" or cause == "CancelledError"


def is_refused(values: Line) -> bool:
    """Say whether a circuit breaker, a limit or a group on this side refused it."""
    return status_of(values) is None and cause_type(values) in _REFUSALS


def host_of(values: Line) -> str | None:
    """Return the host that it went to; None of a function."""
    url = text(values, "sent_url") or text(values, "request_url")
    return None if url is None else place_of(url.partition("?")[0]).host


def where(values: Line) -> str:
    """Name what it went to: an endpoint, else a host, else a function."""
    return (
        text(values, "endpoint")
        or host_of(values)
        or (text(values, "name") or "")[:_LONGEST_NAME]
    )
