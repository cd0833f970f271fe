"""The instruments of an OpenTelemetry SDK, once it is set up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

from opentelemetry import metrics, trace

from .. import __version__
from .._errors import bad_argument
from .._text.printable import encodable
from .client import DURATION_BUCKETS, Names, Traffic
from .series import SERIES, Series, ThingKind, ThingT, WeakRegistry, one_per_registry

_NAMES: Final = {
    "attempt_duration_seconds": "http.client.request.duration",
    "connection_wait_seconds": "aioretry_smithy.connection.wait_time",
}
"""The names that the conventions for HTTP have."""


TrafficInstruments: TypeAlias = Traffic["Callable[..., None]"]
"""What adds to counters and histograms of attempts and calls."""


def _adding(meter: metrics.Meter, name: str) -> Callable[..., None]:
    """Make the instrument of a series, and return the function that adds a value."""
    series = SERIES[name]
    if series.kind == "counter":
        counter = meter.create_counter(series.instrument, series.unit, series.text)
        return counter.add
    histogram = meter.create_histogram(
        _NAMES.get(series.name, series.instrument),
        series.unit,
        series.text,
        explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
    )
    return histogram.record


class ThingInstruments(Generic[ThingT]):
    """The instruments for things of a kind, and those things, which gauges show.

    Those of a meter are the same for all that tell of the kind, in detail or not.
    """

    def __init__(self, kind: ThingKind[ThingT], meter: metrics.Meter) -> None:
        self._kind = kind
        self._names = Names()
        self._things: WeakRegistry[ThingT] = WeakRegistry()
        self._detailed: WeakRegistry[ThingT] = WeakRegistry()
        self._counters = {name: _adding(meter, name) for name in kind.counters}
        create: Callable[..., object] = meter.create_observable_gauge
        if kind.is_additive:
            create = meter.create_observable_up_down_counter
        for name in kind.gauges:
            series = SERIES[name]
            observe = [partial(self._observe, series)]
            create(series.instrument, observe, series.unit, series.text)

    def show(self, thing: ThingT, /, *, detailed: bool) -> None:
        """Observe the gauges of a thing from now on, with details if *detailed*."""
        self._things.add(thing)
        if detailed:
            self._detailed.add(thing)

    note = show

    def count(self, name: str, thing: ThingT, /, *labels: str) -> None:
        """Count an event under the labels that follow the name of the thing."""
        attributes = self._attributes(SERIES[name], thing, labels)
        self._counters[name](1, attributes)

    def _attributes(
        self, series: Series, thing: ThingT, labels: tuple[str, ...]
    ) -> dict[str, str]:
        if len(labels) == len(series.labels):
            # The first one is an endpoint.
            labels = self._names[labels[0]], *labels[1:]
        return series.attributes_of((encodable(thing.name), *labels))

    def _observe(
        self, series: Series, options: metrics.CallbackOptions
    ) -> Iterator[metrics.Observation]:
        detailed = {id(thing) for thing in self._detailed.all()}
        read = self._kind.gauges[series.name]
        for thing in self._things.all():
            for labels, value in read(thing, id(thing) in detailed):
                yield metrics.Observation(
                    value, self._attributes(series, thing, labels)
                )


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
    """Makes a tracer or instruments as soon as a provider is configured.

    A provider has a method called *function*, and *current* returns the global one.
    *make* gets the provider and the tracer or meter that it has for us.
    """

    provider: P | None
    """The provider; None for the global one, or for a proxy of it."""

    def __init__(
        self,
        name: str,
        provider: P | None,
        function: str,
        current: Callable[[], P],
        make: Callable[[P, Any], V],
    ) -> None:
        check_has(name, provider, function)
        stands_in = _is_mute(provider) and not isinstance(provider, _NO_OP)
        self.provider = None if stands_in else provider
        self._function, self._current, self._make = function, current, make
        # In one piece, so that no other thread finds half of it.
        self._found: tuple[P | None, V | None] = None, None

    def get(self) -> V | None:
        """Return the tracer or the instruments; None without a provider."""
        provider = self._current() if self.provider is None else self.provider
        asked, made = self._found
        if provider is not asked:
            made = None
            if not _is_mute(provider):
                found = getattr(provider, self._function)(*_SCOPE)
                made = None if _is_mute(found) else self._make(provider, found)
            self._found = provider, made
        return made


def tracer_from(
    provider: trace.TracerProvider | None,
) -> FromProvider[trace.TracerProvider, trace.Tracer]:
    """Return a finder of the tracer of a provider; of the global one for None."""
    current = trace.get_tracer_provider
    return FromProvider(
        "tracer_provider", provider, "get_tracer", current, lambda _, tracer: tracer
    )


def instruments_from(
    provider: metrics.MeterProvider | None, *, is_http: bool
) -> FromProvider[metrics.MeterProvider, TrafficInstruments]:
    """Return a finder of the instruments for calls; of the global provider for None."""

    def new(meter: metrics.Meter) -> TrafficInstruments:
        return Traffic(partial(_adding, meter), is_http=is_http)

    return _made_from(provider, (Traffic, is_http), new)


def things_from(
    provider: metrics.MeterProvider | None, kind: ThingKind[ThingT]
) -> FromProvider[metrics.MeterProvider, ThingInstruments[ThingT]]:
    """Return a finder of the instruments for the things of a kind."""
    return _made_from(provider, kind, partial(ThingInstruments, kind))


def _made_from(
    provider: metrics.MeterProvider | None,
    key: object,
    new: Callable[[metrics.Meter], V],
) -> FromProvider[metrics.MeterProvider, V]:
    def make(provider: metrics.MeterProvider, meter: metrics.Meter) -> V:
        # An SDK keeps the first instrument of a name, and does not collect from later
        # ones.
        return one_per_registry(provider, key, partial(new, meter))

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
