"""Make tracers, counters and histograms, once an OpenTelemetry SDK is set up."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation

from .. import __version__
from .._breaker.breaker import CircuitBreaker
from .._breaker.state import CircuitState
from .._errors import bad_argument
from .._limits.concurrency_limit import ConcurrencyLimit
from .._retry.budget import RetryBudget
from .._text import encodable
from .labels import DURATION_BUCKETS, HEDGES, Names
from .registry import LIMIT_GAUGES, T, WeakRegistry, one_per_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class TrafficInstruments:
    """The instruments for attempts and calls, of HTTP or of functions."""

    def __init__(
        self, meter: Meter, prefix: str, attempt: tuple[str, str], *, is_http: bool
    ) -> None:
        histogram = partial(
            meter.create_histogram,
            unit="s",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )
        name, description = attempt
        self.names = Names()
        self.attempt_duration = histogram(name, description=description)
        self.call_duration = histogram(
            f"{prefix}.call.duration",
            description="Duration of calls, with all their attempts and waits.",
        )
        self.attempts = meter.create_counter(
            f"{prefix}.attempts", "{attempt}", "Attempts of calls."
        )
        self.retries = meter.create_counter(
            f"{prefix}.retries", "{attempt}", "Attempts after the first of a call."
        )
        self.connection_wait: Histogram | None = None
        if is_http:
            self.connection_wait = histogram(
                f"{prefix}.connection.wait_time",
                description="Time that an attempt waited for its connection.",
            )
        kinds = HEDGES if is_http else {}
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
    return TrafficInstruments(meter, "aioretry_smithy", attempt, is_http=True)


def rpc_instruments(meter: Meter) -> TrafficInstruments:
    """Make the instruments for calls of functions."""
    attempt = "aioretry_smithy.rpc.attempt.duration", "Duration of attempts."
    return TrafficInstruments(meter, "aioretry_smithy.rpc", attempt, is_http=False)


class _Instruments(WeakRegistry[T]):
    """The instruments for objects of a kind, and those objects, which gauges show."""

    prefix: ClassVar[str]

    def attributes(self, thing: T) -> dict[str, str]:
        """Say which object is meant."""
        return {f"{self.prefix}.name": encodable(thing.name)}


class CircuitBreakerInstruments(_Instruments[CircuitBreaker]):
    """The instruments for circuit breakers."""

    prefix = "aioretry_smithy.circuit_breaker"
    _state: Final = f"{prefix}.state"

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.transitions = meter.create_counter(
            f"{self.prefix}.transitions", "{transition}", "Changes of state."
        )
        self.rejections = meter.create_counter(
            f"{self.prefix}.rejections", "{request}", "Requests that were refused."
        )
        meter.create_observable_gauge(
            self._state,
            [self._states],
            "1",
            "1 for the state that a circuit breaker is in, 0 for the others.",
        )

    def attributes_in(
        self, circuit_breaker: CircuitBreaker, state: CircuitState
    ) -> dict[str, str]:
        """Say which circuit breaker is meant, in which state."""
        return {**self.attributes(circuit_breaker), self._state: str(state)}

    def _states(self, options: CallbackOptions) -> Iterator[Observation]:
        for circuit_breaker in self.all():
            present = circuit_breaker.state
            for state in CircuitState:
                yield Observation(
                    int(state is present), self.attributes_in(circuit_breaker, state)
                )


class RetryBudgetInstruments(_Instruments[RetryBudget]):
    """The instruments for retry budgets."""

    prefix = "aioretry_smithy.retry_budget"

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.refusals = meter.create_counter(
            f"{self.prefix}.refusals", "{attempt}", "Retries that were refused."
        )
        name, text = f"{self.prefix}.tokens", "Tokens that are there now."
        meter.create_observable_gauge(name, [self._tokens], "{token}", text)

    def _tokens(self, options: CallbackOptions) -> Iterator[Observation]:
        for budget in self.all():
            yield Observation(budget.tokens, self.attributes(budget))


class ConcurrencyLimitInstruments(_Instruments[ConcurrencyLimit]):
    """The instruments for concurrency limits."""

    prefix = "aioretry_smithy.concurrency_limit"

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.refusals = meter.create_counter(
            f"{self.prefix}.refusals",
            "{request}",
            "Requests that got no place in time.",
        )
        for name, value, text in LIMIT_GAUGES:
            meter.create_observable_up_down_counter(
                f"{self.prefix}.{name}", [self._observe(value)], "{request}", text
            )

    def _observe(
        self, value: Callable[[ConcurrencyLimit], int]
    ) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda options: [
            Observation(value(limit), self.attributes(limit)) for limit in self.all()
        ]


# Of the scope: its name, its version, and the first stable conventions for HTTP.
_SCOPE: Final = (
    "aioretry_smithy",
    __version__,
    "https://opentelemetry.io/schemas/1.23.0",
)
_API: Final = ("opentelemetry.trace", "opentelemetry.metrics")
_NO_OP: Final = (trace.NoOpTracerProvider, metrics.NoOpMeterProvider)

P = TypeVar("P")
V = TypeVar("V")


class FromProvider(Generic[P, V]):
    """Makes a tracer or instruments once their provider is set up, also later.

    A provider has a method called *function*, and *current* returns the global one.
    What *make* returns is None where it would do nothing.
    """

    provider: P | None
    """The provider; None for the global one, or for a proxy of it."""

    def __init__(
        self,
        name: str,
        provider: P | None,
        function: str,
        current: Callable[[], P],
        make: Callable[[P], V | None],
    ) -> None:
        check_has(name, provider, function)
        stands_in = _is_mute(provider) and not isinstance(provider, _NO_OP)
        self.provider = None if stands_in else provider
        self._current, self._make = current, make
        # In one piece, so that no other thread finds half of it.
        self._found: tuple[P | None, V | None] = None, None

    def get(self) -> V | None:
        """Return the tracer or the instruments, or None where they do nothing."""
        provider = self._current() if self.provider is None else self.provider
        asked, made = self._found
        if provider is not asked:
            made = None if _is_mute(provider) else self._make(provider)
            self._found = provider, made
        return made


def tracer_from(
    provider: trace.TracerProvider | None,
) -> FromProvider[trace.TracerProvider, trace.Tracer]:
    """Return a finder of the tracer of a provider; of the global one for None."""

    def make(provider: trace.TracerProvider) -> trace.Tracer | None:
        tracer = provider.get_tracer(*_SCOPE)
        return None if _is_mute(tracer) else tracer

    current = trace.get_tracer_provider
    return FromProvider("tracer_provider", provider, "get_tracer", current, make)


def instruments_from(
    provider: metrics.MeterProvider | None, kind: Callable[[metrics.Meter], V]
) -> FromProvider[metrics.MeterProvider, V]:
    """Return a finder of the instruments of a kind; of the global provider for None."""

    def make(provider: metrics.MeterProvider) -> V | None:
        meter = provider.get_meter(*_SCOPE)
        # An SDK keeps the first instrument of a name, and does not collect from later
        # ones.
        if _is_mute(meter):
            return None
        return one_per_registry(provider, kind, lambda: kind(meter))

    current = metrics.get_meter_provider
    return FromProvider("meter_provider", provider, "get_meter", current, make)


def check_has(name: str, value: object, function: str) -> None:
    """Refuse an argument that is neither None nor an object with a function.

    Raises:
        ValueError: It is neither; a class is none, though it has the function too.
    """
    if value is None:
        return
    if isinstance(value, type) or not callable(getattr(value, function, None)):
        raise bad_argument(name, value, f"None, or an object with {function}()")


def _is_mute(found: object) -> bool:
    # Objects of the API itself do nothing; those that do are of an SDK.
    return type(found).__module__.startswith(_API)
