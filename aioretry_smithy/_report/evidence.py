"""Gather the numbers that back hints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .outcome import cause_type, host_of, status_of
from .table import Table
from .tally import add_to, stop_reason
from .values import number, text

if TYPE_CHECKING:
    from .answers import Line
    from .seen_call import SeenAttempt, SeenCall

_NEAR: Final = 0.8
"""An answer that took so much of the attempt's time nearly was too late."""

_IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
_TIMEOUT: Final = "AttemptTimeoutError"
_UNSENT: Final = frozenset(
    {
        "ClientConnectorCertificateError",
        "ClientConnectorDNSError",
        "ClientConnectorError",
        "ClientConnectorSSLError",
        "ClientProxyConnectionError",
        "ConnectionTimeoutError",
    }
)


def is_near(limit: float, attempt: Line) -> bool:
    """Say whether an attempt nearly took too long."""
    took = number(attempt, "duration")
    return took is not None and took >= _NEAR * limit


class PlaceEvidence:
    """The counts of the attempts to one host or endpoint, for hints."""

    __slots__ = ("attempts", "failures", "limit", "near", "throttled", "timeouts")

    def __init__(self) -> None:
        self.attempts = self.failures = self.throttled = 0.0
        self.timeouts = self.near = self.limit = 0.0

    @property
    def weight(self) -> float:
        """How many attempts there are."""
        return self.attempts

    def add(self, attempt: SeenAttempt, weight: float) -> None:
        """Look at an attempt."""
        values = attempt.values
        self.attempts += weight
        if attempt.is_superseded:
            return
        limit = number(values, "response_timeout")
        if attempt.is_success:
            if limit and is_near(limit, values):
                self.near += weight
                self.limit = max(self.limit, limit)
            return
        self.failures += weight
        if _is_throttled(values):
            self.throttled += weight
        elif cause_type(values) == _TIMEOUT:
            self.timeouts += weight
            self.limit = max(self.limit, limit or 0.0)

    def merge(self, other: PlaceEvidence) -> None:
        """Take over what another place says."""
        self.attempts += other.attempts
        self.failures += other.failures
        self.throttled += other.throttled
        self.timeouts += other.timeouts
        self.near += other.near
        self.limit = max(self.limit, other.limit)


class Evidence:
    """The counts of all calls, with those inside, for hints."""

    def __init__(self) -> None:
        self.hosts: Table[str, PlaceEvidence] = Table(PlaceEvidence)
        self.endpoints: Table[str, PlaceEvidence] = Table(PlaceEvidence)
        self.reasons: dict[str, float] = {}
        self.hedges = self.hedges_won = 0.0
        self.connections = self.connections_opened = 0.0
        self.deadlines_in_timeouts = 0.0
        self.retried = self.rescued = 0.0
        self.unsent = 0.0
        self.attempts = self.attempts_with_limit = 0.0

    def add(self, call: SeenCall, weight: float) -> None:
        """Look at a call and at those inside."""
        for attempt in call.attempts:
            self._add_attempt(attempt, weight)
        if len(call.attempts) == 1 and call.is_success:
            return
        if any(attempt.is_superseded for attempt in call.attempts):
            # A hedge that followed on a failure says nothing of its delay.
            hedges = [attempt for attempt in call.attempts if attempt.is_hedge]
            self.hedges += weight * len(hedges)
            self.hedges_won += weight * sum(map(_has_won, hedges))
        self._add_retries(call, weight)
        if not call.is_success:
            self._add_ending(call, weight)

    def _add_attempt(self, attempt: SeenAttempt, weight: float) -> None:
        values = attempt.values
        for call in attempt.calls:
            self.add(call, weight)
        host = host_of(values)
        if host is None:
            return
        self.attempts += weight
        if values.get("response_timeout") is not None:
            self.attempts_with_limit += weight
        self.hosts.at(host).add(attempt, weight)
        endpoint = text(values, "endpoint")
        if endpoint is not None:
            self.endpoints.at(endpoint).add(attempt, weight)
        connection = values.get("connection")
        if isinstance(connection, dict):
            self.connections += weight
            self.connections_opened += weight * (connection.get("reused") is False)

    def _add_retries(self, call: SeenCall, weight: float) -> None:
        if any(attempt.is_retried for attempt in call.attempts):
            self.retried += weight
            self.rescued += weight * call.is_success

    def _add_ending(self, call: SeenCall, weight: float) -> None:
        values = call.values
        reason = stop_reason(values)
        if reason is not None:
            add_to(self.reasons, reason, weight)
        timeouts = [cause_type(each.values) == _TIMEOUT for each in call.attempts]
        if reason == "deadline" and any(timeouts):
            self.deadlines_in_timeouts += weight
        if reason in {None, "no_retry"} and _could_be_sent_again(values):
            self.unsent += weight


def _could_be_sent_again(values: Line) -> bool:
    """Say whether it never reached a server, though it may not be sent twice."""
    method = text(values, "request_method")
    is_safe = method is None or method in _IDEMPOTENT
    return not is_safe and not values.get("sent") and cause_type(values) in _UNSENT


def _has_won(hedge: SeenAttempt) -> bool:
    return hedge.is_success and not hedge.is_superseded


def _is_throttled(values: Line) -> bool:
    """Say whether the server asked to come back later."""
    status, headers = status_of(values), values.get("response_headers")
    if status == 429:
        return True
    return (
        status == 503
        and isinstance(headers, dict)
        and any(str(name).lower() == "retry-after" for name in headers)
    )
