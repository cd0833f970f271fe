"""Make the counters and histograms for OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar
from weakref import WeakValueDictionary

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from .._breaker.state import CircuitState
from .._text import encodable
from .labels import DURATION_BUCKETS, Names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._breaker.breaker import CircuitBreaker
    from .._retry.budget import RetryBudget

T = TypeVar("T", bound="CircuitBreaker | RetryBudget")

_BREAKER: Final = "aioretry_smithy.circuit_breaker"
_BUDGET: Final = "aioretry_smithy.retry_budget"

_BREAKER_STATE: Final = f"{_BREAKER}.state"


def breaker_attributes(
    circuit_breaker: CircuitBreaker, state: CircuitState | None = None
) -> dict[str, str]:
    """Return the attributes for a circuit breaker in a state."""
    attributes = {f"{_BREAKER}.name": encodable(circuit_breaker.name)}
    return attributes if state is None else {**attributes, _BREAKER_STATE: str(state)}


def budget_attributes(budget: RetryBudget) -> dict[str, str]:
    """Return the attributes for a retry budget."""
    return {f"{_BUDGET}.name": encodable(budget.name)}


class WeakRegistry(Generic[T]):
    """Keeps the things that a gauge shows, weakly, and one of each name.

    An SDK asks for them from a thread of its own.
    """

    def __init__(self) -> None:
        self._things: WeakValueDictionary[str, T] = WeakValueDictionary()

    def add(self, thing: T) -> None:
        """Show *thing* from now on, and no other one of its name."""
        self._things[thing.name] = thing

    def all(self) -> list[T]:
        """Return the things that are alive."""
        # In one piece, unlike values(), which another thread may disturb.
        references = self._things.valuerefs()
        return [thing for found in references if (thing := found()) is not None]


class TrafficInstruments:
    """The instruments for attempts and calls, of HTTP or of functions."""

    def __init__(self, meter: Meter, prefix: str, attempt: tuple[str, str]) -> None:
        name, description = attempt
        self.names = Names()
        self.attempt_duration = meter.create_histogram(
            name,
            "s",
            description,
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )
        self.call_duration = meter.create_histogram(
            f"{prefix}.call.duration",
            "s",
            "Duration of calls, with all their attempts and waits.",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )
        self.attempts = meter.create_counter(
            f"{prefix}.attempts", "{attempt}", "Attempts of calls."
        )
        self.retries = meter.create_counter(
            f"{prefix}.retries",
            "{attempt}",
            "Attempts after the first of a call.",
        )


def http_instruments(meter: Meter) -> TrafficInstruments:
    """Make the instruments for HTTP calls."""
    attempt = "http.client.request.duration", "Duration of HTTP client requests."
    return TrafficInstruments(meter, "aioretry_smithy", attempt)


def rpc_instruments(meter: Meter) -> TrafficInstruments:
    """Make the instruments for calls of functions."""
    attempt = "aioretry_smithy.rpc.attempt.duration", "Duration of attempts."
    return TrafficInstruments(meter, "aioretry_smithy.rpc", attempt)


class CircuitBreakerInstruments:
    """The instruments for circuit breakers."""

    def __init__(self, meter: Meter) -> None:
        self.circuit_breakers: WeakRegistry[CircuitBreaker] = WeakRegistry()
        self.transitions = meter.create_counter(
            f"{_BREAKER}.transitions", "{transition}", "Changes of state."
        )
        self.rejections = meter.create_counter(
            f"{_BREAKER}.rejections", "{request}", "Requests that were refused."
        )
        meter.create_observable_gauge(
            _BREAKER_STATE,
            [self._states],
            "1",
            "1 for the state that a circuit breaker is in, 0 for the others.",
        )

    def _states(self, options: CallbackOptions) -> Iterator[Observation]:
        for circuit_breaker in self.circuit_breakers.all():
            present = circuit_breaker.state
            for state in CircuitState:
                yield Observation(
                    int(state is present),
                    breaker_attributes(circuit_breaker, state),
                )


class RetryBudgetInstruments:
    """The instruments for retry budgets."""

    def __init__(self, meter: Meter) -> None:
        self.budgets: WeakRegistry[RetryBudget] = WeakRegistry()
        self.refusals = meter.create_counter(
            f"{_BUDGET}.refusals", "{attempt}", "Retries that were refused."
        )
        meter.create_observable_gauge(
            f"{_BUDGET}.tokens", [self._tokens], "{token}", "Tokens that are there now."
        )

    def _tokens(self, options: CallbackOptions) -> Iterator[Observation]:
        for budget in self.budgets.all():
            yield Observation(budget.tokens, budget_attributes(budget))
