"""The Prometheus metrics of one registry, and the values that their labels take."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from .._breaker.state import CircuitState
from .._errors import bad_argument
from .hedges import HEDGES
from .labels import ANOTHER_NAME, DURATION_BUCKETS, Names
from .one_per_registry import one_per_registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client.registry import Collector

    from .._breaker.breaker import CircuitBreaker
    from .._retry.budget import RetryBudget


class RegisteredMetrics:
    """Metrics that are registered together."""

    def __init__(self, *collectors: Collector) -> None:
        self.collectors = collectors
        self.names: Names = Names()


class TrafficMetrics(RegisteredMetrics):
    """The counters and histograms of a metrics client.

    Args:
        prefix: What the names of the metrics begin with.
        subject: The labels that tell calls from one another.
        outcome: The label for the outcome of an attempt.
        end: The words for when a call or an attempt ends.
        is_hedged: Whether there may be hedges.
    """

    def __init__(
        self,
        prefix: str,
        subject: tuple[str, ...],
        outcome: str,
        end: str,
        *,
        is_hedged: bool,
    ) -> None:
        of_attempts = (*subject, outcome)
        self.attempts: Counter = Counter(
            f"{prefix}attempts", "Attempts.", of_attempts, registry=None
        )
        self.retries: Counter = Counter(
            f"{prefix}retries",
            "Attempts after the first of a call.",
            of_attempts,
            registry=None,
        )
        self.attempt_duration: Histogram = Histogram(
            f"{prefix}attempt_duration_seconds",
            f"Seconds from an attempt's start to its {end}.",
            of_attempts,
            buckets=DURATION_BUCKETS,
            registry=None,
        )
        self.call_duration: Histogram = Histogram(
            f"{prefix}call_duration_seconds",
            f"Seconds from a call's start to its {end}.",
            (*subject, "stop_reason"),
            buckets=DURATION_BUCKETS,
            registry=None,
        )
        kinds = HEDGES if is_hedged else {}
        self.hedges: dict[str, Counter] = {
            kind: Counter(_name_of_hedges(prefix, kind), words, subject, registry=None)
            for kind, words in kinds.items()
        }
        super().__init__(
            self.attempts,
            self.retries,
            self.attempt_duration,
            self.call_duration,
            *self.hedges.values(),
        )


def _name_of_hedges(prefix: str, kind: str) -> str:
    return f"{prefix}hedges" if kind == "sent" else f"{prefix}hedges_{kind}"


def http_metrics() -> TrafficMetrics:
    """Make the metrics of HTTP calls."""
    subject, end = ("host", "method"), "headers or its failure"
    prefix, outcome = "aioretry_smithy_", "status_class"
    return TrafficMetrics(prefix, subject, outcome, end, is_hedged=True)


def rpc_metrics() -> TrafficMetrics:
    """Make the metrics of calls of functions."""
    prefix, subject = "aioretry_smithy_rpc_", ("name",)
    return TrafficMetrics(prefix, subject, "outcome", "end", is_hedged=False)


class BreakerMetrics(RegisteredMetrics):
    """The counters and gauges of circuit breakers."""

    def __init__(self) -> None:
        self.state: Gauge = Gauge(
            "aioretry_smithy_circuit_breaker_state",
            "1 for the state that a circuit breaker is in.",
            ("circuit_breaker", "state"),
            multiprocess_mode="livesum",
            registry=None,
        )
        self.transitions: Counter = Counter(
            "aioretry_smithy_circuit_breaker_transitions",
            "How often a circuit breaker went into a state.",
            ("circuit_breaker", "state"),
            registry=None,
        )
        self.rejections: Counter = Counter(
            "aioretry_smithy_circuit_breaker_rejections",
            "Requests that a circuit breaker refused.",
            ("circuit_breaker",),
            registry=None,
        )
        super().__init__(self.state, self.transitions, self.rejections)
        # Not their names: a new one may have the name of one that is gone.
        self.shown: WeakSet[CircuitBreaker] = WeakSet()

    def show(self, name: str, present: CircuitState) -> None:
        """Show the state of a circuit breaker."""
        # Counters begin at 0, so that rate() sees the first event too.
        self.rejections.labels(name)
        for state in CircuitState:
            self.transitions.labels(name, state.value)
            if name != ANOTHER_NAME:
                self.state.labels(name, state.value).set(state is present)


class BudgetMetrics(RegisteredMetrics):
    """The counters and gauges of retry budgets."""

    def __init__(self) -> None:
        self.tokens: Gauge = Gauge(
            "aioretry_smithy_retry_budget_tokens",
            "Tokens that a retry budget holds.",
            ("retry_budget",),
            multiprocess_mode="livemin",
            registry=None,
        )
        self.refusals: Counter = Counter(
            "aioretry_smithy_retry_budget_refusals",
            "Retries that a retry budget refused.",
            ("retry_budget",),
            registry=None,
        )
        super().__init__(self.tokens, self.refusals)

    def show(self, budget: RetryBudget) -> str:
        """Show the tokens of a budget, and return its label."""
        name = self.names[budget.name]
        self.refusals.labels(name)
        if name != ANOTHER_NAME:
            self.tokens.labels(name).set(budget.tokens)
        return name


_M = TypeVar("_M", bound=RegisteredMetrics)


def metrics_in(registry: CollectorRegistry, kind: Callable[[], _M]) -> _M:
    """Return the metrics of a kind in a registry, which takes each name once.

    Raises:
        ValueError: *registry* is none, or has a metric of that name that is not ours.
    """
    if not isinstance(registry, CollectorRegistry):
        raise bad_argument("registry", registry, "a prometheus_client registry")
    return one_per_registry(registry, kind, lambda: _registered(registry, kind()))


def _registered(registry: CollectorRegistry, metrics: _M) -> _M:
    with ExitStack() as undo:
        for collector in metrics.collectors:
            registry.register(collector)
            undo.callback(registry.unregister, collector)
        undo.pop_all()
    return metrics
