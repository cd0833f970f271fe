"""Make the counters and histograms for OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from .._breaker.state import CircuitState
from .._text import encodable
from .hedges import HEDGES
from .labels import DURATION_BUCKETS, Names
from .limit_gauges import LIMIT_GAUGES
from .weak_registry import WeakRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .._breaker.breaker import CircuitBreaker
    from .._limits.concurrency_limit import ConcurrencyLimit
    from .._retry.budget import RetryBudget

_BREAKER: Final = "aioretry_smithy.circuit_breaker"
_BUDGET: Final = "aioretry_smithy.retry_budget"
_LIMIT: Final = "aioretry_smithy.concurrency_limit"

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


def limit_attributes(limit: ConcurrencyLimit) -> dict[str, str]:
    """Say which concurrency limit is meant."""
    return {f"{_LIMIT}.name": encodable(limit.name)}


class TrafficInstruments:
    """The instruments for attempts and calls, of HTTP or of functions."""

    def __init__(
        self, meter: Meter, prefix: str, attempt: tuple[str, str], *, is_hedged: bool
    ) -> None:
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
        kinds = HEDGES if is_hedged else {}
        self.hedges = {
            kind: meter.create_counter(
                f"{prefix}.hedges" if kind == "sent" else f"{prefix}.hedges.{kind}",
                "{request}",
                words,
            )
            for kind, words in kinds.items()
        }


def http_instruments(meter: Meter) -> TrafficInstruments:
    """Make the instruments for HTTP calls."""
    attempt = "http.client.request.duration", "Duration of HTTP client requests."
    return TrafficInstruments(meter, "aioretry_smithy", attempt, is_hedged=True)


def rpc_instruments(meter: Meter) -> TrafficInstruments:
    """Make the instruments for calls of functions."""
    attempt = "aioretry_smithy.rpc.attempt.duration", "Duration of attempts."
    return TrafficInstruments(meter, "aioretry_smithy.rpc", attempt, is_hedged=False)


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


class ConcurrencyLimitInstruments:
    """The instruments for concurrency limits."""

    def __init__(self, meter: Meter) -> None:
        self.limits: WeakRegistry[ConcurrencyLimit] = WeakRegistry()
        self.refusals = meter.create_counter(
            f"{_LIMIT}.refusals", "{request}", "Requests that got no place in time."
        )
        for name, value, description in LIMIT_GAUGES:
            meter.create_observable_up_down_counter(
                f"{_LIMIT}.{name}", [self._observe(value)], "{request}", description
            )

    def _observe(
        self, value: Callable[[ConcurrencyLimit], int]
    ) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda options: [
            Observation(value(limit), limit_attributes(limit))
            for limit in self.limits.all()
        ]
