"""The one table of what Prometheus reads, for the code, the page and the dashboard."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from .labels import HEDGES
from .registry import LIMIT_GAUGES

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "aioretry_smithy_"
"""What all names begin with."""


class Series(NamedTuple):
    """One row of the table."""

    kind: Literal["counter", "gauge", "histogram"]
    """The type, as Prometheus calls it."""

    name: str
    """The name that it is registered by, without the prefix."""

    labels: tuple[str, ...]
    """The names of its labels, in the order of their values."""

    text: str
    """What it counts or measures."""

    is_by_endpoint: bool = False
    """Whether a label ``endpoint`` may come after the first one, on request."""

    @property
    def shown(self) -> str:
        """The name that Prometheus shows, without the prefix."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


_counter = partial(Series, "counter")
_gauge = partial(Series, "gauge")
_histogram = partial(Series, "histogram")

_HTTP: Final = "host", "method"
_RPC: Final = ("name",)
_BREAKER: Final = ("circuit_breaker",)
_BUDGET: Final = ("retry_budget",)
_LIMIT: Final = ("concurrency_limit",)
_GROUP: Final = ("group",)

_ATTEMPTS: Final = "Attempts."
_RETRIES: Final = "Attempts after the first of a call."
_ATTEMPT_TIME: Final = "Seconds from an attempt's start to its {}."
_CALL_TIME: Final = "Seconds from a call's start to its {}."
_CONNECTION_TIME: Final = "Seconds that an attempt waited for its connection, if timed."
_HEADERS: Final = "headers or its failure"
_STATE: Final = "1 for the state that a circuit breaker is in."
_TRANSITIONS: Final = "How often a circuit breaker went into a state."
_REJECTIONS: Final = "Requests that a circuit breaker refused."
_TOKENS: Final = "Tokens that a retry budget holds."
_REFUSALS: Final = "Retries that a retry budget refused."
_NO_PLACE: Final = "Requests that got no place in time, or none in the queue."
_ENDPOINTS: Final = "Endpoints of a group."
_EJECTIONS: Final = "How often endpoints of a group were out."

_ROWS: Final = (
    _counter("attempts", (*_HTTP, "status_class"), _ATTEMPTS),
    _counter("retries", (*_HTTP, "status_class"), _RETRIES),
    _histogram(
        "attempt_duration_seconds",
        (*_HTTP, "status_class"),
        _ATTEMPT_TIME.format(_HEADERS),
    ),
    _histogram(
        "call_duration_seconds", (*_HTTP, "stop_reason"), _CALL_TIME.format(_HEADERS)
    ),
    _histogram("connection_wait_seconds", ("host", "part"), _CONNECTION_TIME),
    _counter("hedges", _HTTP, HEDGES["sent"]),
    _counter("hedges_won", _HTTP, HEDGES["won"]),
    _counter("hedges_refused", _HTTP, HEDGES["refused"]),
    _counter("rpc_attempts", (*_RPC, "outcome"), _ATTEMPTS),
    _counter("rpc_retries", (*_RPC, "outcome"), _RETRIES),
    _histogram(
        "rpc_attempt_duration_seconds", (*_RPC, "outcome"), _ATTEMPT_TIME.format("end")
    ),
    _histogram(
        "rpc_call_duration_seconds", (*_RPC, "stop_reason"), _CALL_TIME.format("end")
    ),
    _gauge("circuit_breaker_state", (*_BREAKER, "state"), _STATE),
    _counter("circuit_breaker_transitions", (*_BREAKER, "state"), _TRANSITIONS),
    _counter("circuit_breaker_rejections", _BREAKER, _REJECTIONS),
    _gauge("retry_budget_tokens", _BUDGET, _TOKENS),
    _counter("retry_budget_refusals", _BUDGET, _REFUSALS),
    *(
        _gauge(f"concurrency_limit_{name}", _LIMIT, text)
        for name, _, text in LIMIT_GAUGES
    ),
    _counter("concurrency_limit_refusals", _LIMIT, _NO_PLACE),
    _gauge("endpoints", (*_GROUP, "state"), _ENDPOINTS, is_by_endpoint=True),
    _counter("ejections", (*_GROUP, "reason"), _EJECTIONS, is_by_endpoint=True),
)

SERIES: Final[Mapping[str, Series]] = {series.name: series for series in _ROWS}
"""All series by the names that they are registered by."""
