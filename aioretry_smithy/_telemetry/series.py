"""The one table of what is measured, and the listeners that both back ends share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
)
from weakref import WeakKeyDictionary, WeakValueDictionary

from .._breaker.breaker import CircuitBreaker, CircuitBreakerListener
from .._breaker.state import CircuitState, EventCount
from .._endpoints.state import EndpointGroupListener, EndpointState
from .._errors import bad_argument
from .._limits.concurrency_limit import ConcurrencyLimit, ConcurrencyLimitListener
from .._retry.budget import RetryBudget, RetryBudgetListener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from .._context.context import ClientRequestContext
    from .._endpoints.group import EndpointGroup
    from .._request.endpoint import Endpoint


PREFIX: Final = "aioretry_smithy_"
"""The beginning of all names for Prometheus."""

OTEL_PREFIX: Final = "aioretry_smithy."
"""The prefix of OpenTelemetry names outside of the semantic conventions."""


_OTEL_NAMES: Final = {
    "circuit_breaker": "circuit_breaker.name",
    "concurrency_limit": "concurrency_limit.name",
    "group": "endpoint_group.name",
    "group.endpoint": "endpoint",
    "group.reason": "ejection.reason",
    "group.state": "endpoint.state",
    "retry_budget": "retry_budget.name",
}
"""The attributes that are not named as the labels are."""


class Series(NamedTuple):
    """The definition of a metric: kind, name, labels, text and unit."""

    kind: Literal["counter", "gauge", "histogram"]
    """The Prometheus type of the metric."""

    name: str
    """The registered name of the metric, without the prefix."""

    labels: tuple[str, ...]
    """The names of its labels, in the order of their values."""

    text: str
    """The description of the metric."""

    unit: str
    """The unit, in the notation of OpenTelemetry (UCUM)."""

    is_by_endpoint: bool = False
    """Whether a label ``endpoint`` may come after the first one, on request."""

    @property
    def shown(self) -> str:
        """The name that Prometheus shows, without the prefix."""
        return f"{self.name}_total" if self.kind == "counter" else self.name

    @property
    def instrument(self) -> str:
        """The name for OpenTelemetry."""
        thing, name = self.labels[0], self.name.removesuffix("_seconds")
        rest = name.removeprefix(f"{thing}_")
        name = name.replace("_", ".") if rest == name else f"{thing}.{rest}"
        return f"{OTEL_PREFIX}{name}"

    def labels_of(self, *, detailed: bool) -> tuple[str, ...]:
        """Return the names of the labels, perhaps with that of the endpoint."""
        first, *others = self.labels
        return (first, "endpoint", *others) if detailed else self.labels

    def attributes_of(self, values: Sequence[str]) -> dict[str, str]:
        """Return OpenTelemetry's attributes for values of labels, an endpoint's too."""
        first, *others = self.labels_of(detailed=len(values) > len(self.labels))
        keys = first, *(f"{first}.{label}" for label in others)
        names = (OTEL_PREFIX + _OTEL_NAMES.get(key, key) for key in keys)
        return dict(zip(names, values, strict=True))


_counter = partial(Series, "counter")
_gauge = partial(Series, "gauge")
_histogram = partial(Series, "histogram", unit="s")

_STATUS: Final = "host", "method", "status_class"
_STOP: Final = "host", "method", "stop_reason"
_HEDGES: Final = "host", "method"
_RPC: Final = "name", "outcome"
_BREAKER: Final = ("circuit_breaker",)
_STATE: Final = "circuit_breaker", "state"
_BUDGET: Final = ("retry_budget",)
_LIMIT: Final = ("concurrency_limit",)

_ATTEMPTS: Final = "Attempts.", "{attempt}"
_RETRIES: Final = "Attempts after the first of a call.", "{attempt}"
_ATTEMPT_TIME: Final = "Seconds from an attempt's start to its {}."
_CALL_TIME: Final = "Seconds from a call's start to its {}."
_WAIT: Final = "Seconds that an attempt waited for its connection, if timed."
_HEDGED: Final = (
    "Hedges: requests sent beside one that was under way or had failed.",
    "{request}",
)
_HEDGED_FIRST: Final = "Hedges whose answer was good and came first.", "{request}"
_NO_HEDGE: Final = "Hedges that a limiter gave no leave for.", "{request}"
_IN_STATE: Final = "1 for the state that a circuit breaker is in."
_CHANGES: Final = "How often a circuit breaker went into a state.", "{transition}"
_REJECTED: Final = "Requests that a circuit breaker refused.", "{request}"
_LIMITED: Final = "Requests that may be in flight at once.", "{request}"
_NO_PLACE: Final = "Requests that got no place in time, or none in the queue."
_OUT: Final = "How often endpoints of a group were out."
_HEADERS: Final = "headers or its failure"

_ROWS: Final = (
    _counter("attempts", _STATUS, *_ATTEMPTS),
    _counter("retries", _STATUS, *_RETRIES),
    _histogram("attempt_duration_seconds", _STATUS, _ATTEMPT_TIME.format(_HEADERS)),
    _histogram("call_duration_seconds", _STOP, _CALL_TIME.format(_HEADERS)),
    _histogram("connection_wait_seconds", ("host", "part"), _WAIT),
    _counter("hedges", _HEDGES, *_HEDGED),
    _counter("hedges_won", _HEDGES, *_HEDGED_FIRST),
    _counter("hedges_refused", _HEDGES, *_NO_HEDGE),
    _counter("rpc_attempts", _RPC, *_ATTEMPTS),
    _counter("rpc_retries", _RPC, *_RETRIES),
    _histogram("rpc_attempt_duration_seconds", _RPC, _ATTEMPT_TIME.format("end")),
    _histogram(
        "rpc_call_duration_seconds", ("name", "stop_reason"), _CALL_TIME.format("end")
    ),
    _gauge("circuit_breaker_state", _STATE, _IN_STATE, "1"),
    _counter("circuit_breaker_transitions", _STATE, *_CHANGES),
    _counter("circuit_breaker_rejections", _BREAKER, *_REJECTED),
    _gauge(
        "retry_budget_tokens", _BUDGET, "Tokens that a retry budget holds.", "{token}"
    ),
    _counter(
        "retry_budget_refusals",
        _BUDGET,
        "Retries that a retry budget refused.",
        "{attempt}",
    ),
    _gauge("concurrency_limit_limit", _LIMIT, *_LIMITED),
    _gauge("concurrency_limit_in_flight", _LIMIT, "Requests in flight.", "{request}"),
    _gauge(
        "concurrency_limit_pending",
        _LIMIT,
        "Requests that wait for a place.",
        "{request}",
    ),
    _counter("concurrency_limit_refusals", _LIMIT, _NO_PLACE, "{request}"),
    _gauge(
        "endpoints", ("group", "state"), "Endpoints of a group.", "{endpoint}", True
    ),
    _counter("ejections", ("group", "reason"), _OUT, "{ejection}", True),
)

SERIES: Final[Mapping[str, Series]] = {series.name: series for series in _ROWS}
"""All series by the names that they are registered by."""

ThingT = TypeVar(
    "ThingT", bound="CircuitBreaker | ConcurrencyLimit | EndpointGroup | RetryBudget"
)

ShownT_contra = TypeVar(
    "ShownT_contra",
    bound="CircuitBreaker | ConcurrencyLimit | EndpointGroup | RetryBudget",
    contravariant=True,
)

Reading: TypeAlias = "Callable[[ThingT, bool], Iterable[tuple[tuple[str, ...], float]]]"
"""Yields the labels that follow the name, and the value; in detail or not."""


@dataclass(frozen=True, eq=False)
class ThingKind(Generic[ThingT]):
    """The series of things that have names, and how to read their gauges."""

    counters: Mapping[str, tuple[tuple[str, ...], ...]]
    """The names of counters, with the labels after the first that begin at 0."""

    gauges: Mapping[str, Reading[ThingT]]

    mode: Literal["livemin", "livesum"] | None = None
    """What several processes show together to Prometheus; None for nothing."""

    is_additive: bool = True
    """Whether the gauges can be added up."""


def _states(
    circuit_breaker: CircuitBreaker, detailed: bool
) -> Iterator[tuple[tuple[str, ...], float]]:
    present = circuit_breaker.state
    for state in CircuitState:
        yield (state.value,), int(state is present)


ENDPOINT_STATES: Final = "ready", "ejected", "unhealthy"
"""How an endpoint may be."""

REASONS: Final = (
    *("connect_failures", "consecutive_failures", "failure_rate", "trial_failed"),
    *("retry_after", "circuit_open", "unhealthy"),
)
"""Why an endpoint may be out."""


def _endpoints(
    group: EndpointGroup, detailed: bool
) -> Iterator[tuple[tuple[str, ...], float]]:
    """Count the endpoints of a group by their states, or each by itself."""
    found = [(str(each), _state(known)) for each, known in group.states.items()]
    # Two paths at one address have one text, and Prometheus takes each series once.
    pairs = [(name if detailed else "", state) for name, state in found]
    numbers = Counter(pairs)
    for name in dict.fromkeys(name for name, _ in pairs) if detailed else ("",):
        for state in ENDPOINT_STATES:
            yield ((name, state) if detailed else (state,)), numbers[name, state]


def _state(endpoint: EndpointState) -> str:
    if endpoint.reason == "unhealthy":
        return "unhealthy"
    return "ready" if endpoint.ejected_until is None else "ejected"


BREAKERS: Final = ThingKind["CircuitBreaker"](
    {
        "circuit_breaker_transitions": tuple((state.value,) for state in CircuitState),
        "circuit_breaker_rejections": ((),),
    },
    {"circuit_breaker_state": _states},
    "livesum",
    is_additive=False,
)
BUDGETS: Final = ThingKind["RetryBudget"](
    {"retry_budget_refusals": ((),)},
    {"retry_budget_tokens": lambda budget, _: [((), budget.tokens)]},
    "livemin",
    is_additive=False,
)
LIMITS: Final = ThingKind["ConcurrencyLimit"](
    {"concurrency_limit_refusals": ((),)},
    {
        # As it was when it was looked at last: gauges are read in another thread, where
        # a function of the user's is not to be called. Before that it is NaN.
        "concurrency_limit_limit": lambda limit, _: [((), max(0, limit._seen))],
        "concurrency_limit_in_flight": lambda limit, _: [((), limit.in_flight)],
        "concurrency_limit_pending": lambda limit, _: [((), limit.pending)],
    },
)
GROUPS: Final = ThingKind["EndpointGroup"](
    {"ejections": tuple((reason,) for reason in REASONS)}, {"endpoints": _endpoints}
)


M = TypeVar("M")

_made: WeakKeyDictionary[object, dict[object, Any]] = WeakKeyDictionary()
_lock = Lock()


def one_per_registry(owner: object, kind: object, make: Callable[[], M]) -> M:
    """Return the one object of a kind for an owner; make it if there is none."""
    with _lock:
        found = _made.setdefault(owner, {})
        if kind not in found:
            found[kind] = make()
        thing: M = found[kind]
        return thing


class WeakRegistry(Generic[ThingT]):
    """Keeps the things that a gauge shows, weakly, and one of each name.

    Another thread may ask for them.
    """

    def __init__(self) -> None:
        self._things: WeakValueDictionary[str, ThingT] = WeakValueDictionary()

    def add(self, thing: ThingT) -> None:
        """Register *thing*, replacing a thing of the same name."""
        self._things[thing.name] = thing

    def all(self) -> list[ThingT]:
        """Return the things that are alive."""
        # In one piece, unlike values(), which another thread may disturb.
        references = self._things.valuerefs()
        return [thing for found in references if (thing := found()) is not None]


class Backend(Protocol[ShownT_contra]):
    """The back end that shows and counts the things of one kind."""

    def show(self, thing: ShownT_contra, /, *, detailed: bool) -> None:
        """Update the gauges of a thing, replacing a thing of the same name."""

    def note(self, thing: ShownT_contra, /, *, detailed: bool) -> None:
        """Show a thing that is new."""

    def count(self, name: str, thing: ShownT_contra, /, *labels: str) -> None:
        """Count an event under the labels that follow the name of the thing."""


class _Telling(Generic[ThingT]):
    """Base of the listeners that record the metrics of the things of one kind."""

    _kind: ThingKind[ThingT]
    _backend: Callable[[], Backend[ThingT] | None]
    _by_endpoint = False

    def _show(self, thing: ThingT) -> None:
        if (backend := self._backend()) is not None:
            backend.show(thing, detailed=self._by_endpoint)

    def _count(self, name: str, thing: ThingT, *labels: str) -> None:
        if (backend := self._backend()) is not None:
            backend.show(thing, detailed=self._by_endpoint)
            backend.count(name, thing, *labels)


class BreakerTelling(_Telling[CircuitBreaker], CircuitBreakerListener):
    """Records the metrics of circuit breakers."""

    _kind = BREAKERS

    def on_state_changed(
        self, circuit_breaker: CircuitBreaker, state: CircuitState
    ) -> None:
        """Count the change, and show the new state."""
        self._count("circuit_breaker_transitions", circuit_breaker, state.value)

    def on_event_count_updated(
        self, circuit_breaker: CircuitBreaker, event_count: EventCount
    ) -> None:
        """Show a new circuit breaker, even one with a known name."""
        if (backend := self._backend()) is not None:
            backend.note(circuit_breaker, detailed=False)

    def on_request_rejected(self, circuit_breaker: CircuitBreaker) -> None:
        """Count the rejection."""
        if (backend := self._backend()) is not None:
            backend.note(circuit_breaker, detailed=False)
            backend.count("circuit_breaker_rejections", circuit_breaker)


class BudgetTelling(_Telling[RetryBudget], RetryBudgetListener):
    """Records the metrics of retry budgets."""

    _kind = BUDGETS

    def on_tokens_changed(self, budget: RetryBudget) -> None:
        """Show the tokens."""
        self._show(budget)

    def on_retry_refused(self, budget: RetryBudget, ctx: ClientRequestContext) -> None:
        """Count the refusal, and show the tokens."""
        self._count("retry_budget_refusals", budget)


class LimitTelling(_Telling[ConcurrencyLimit], ConcurrencyLimitListener):
    """Records the metrics of concurrency limits."""

    _kind = LIMITS

    def on_limit_changed(self, limit: ConcurrencyLimit) -> None:
        """Show the limit."""
        self._show(limit)

    def on_refused(self, limit: ConcurrencyLimit, ctx: ClientRequestContext) -> None:
        """Count the refusal, and show the limit."""
        self._count("concurrency_limit_refusals", limit)


class GroupTelling(_Telling["EndpointGroup"], EndpointGroupListener):
    """Records the metrics of groups of endpoints, perhaps of each endpoint."""

    _kind = GROUPS

    def _set_detail(self, by_endpoint: object) -> bool:
        """Check and set the level of detail: endpoints by name, or their numbers.

        Raises:
            ValueError: *by_endpoint* is no bool.
        """
        if not isinstance(by_endpoint, bool):
            raise bad_argument("by_endpoint", by_endpoint, "True or False")
        self._by_endpoint = by_endpoint
        return by_endpoint

    def on_endpoints_changed(
        self, group: EndpointGroup, endpoints: Sequence[Endpoint]
    ) -> None:
        """Show the group."""
        self._show(group)

    def on_ejected(
        self, group: EndpointGroup, endpoint: Endpoint, reason: str, until: float
    ) -> None:
        """Count that an endpoint is out, and show the group."""
        more = (str(endpoint),) if self._by_endpoint else ()
        self._count("ejections", group, *more, reason)
