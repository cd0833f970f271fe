"""Where tracers and meters come from, and whether anybody has set them up."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from opentelemetry import metrics, trace

from .. import __version__
from .._errors import bad_argument

if TYPE_CHECKING:
    from collections.abc import Callable

_SCOPE: Final = "aioretry_smithy"
# The first one with the stable conventions for HTTP.
_SCHEMA: Final = "https://opentelemetry.io/schemas/1.23.0"
_API: Final = ("opentelemetry.trace", "opentelemetry.metrics")

I = TypeVar("I")  # noqa: E741

# An SDK keeps the first instrument of a name, and does not ask those who come later
# with another one; so there is one of each kind for all.
_shared: WeakKeyDictionary[Any, dict[object, Any]] = WeakKeyDictionary()
_lock = Lock()


class Tracers:
    """Finds the tracer, also one that is set up later.

    Args:
        provider: Who makes it; None for the global one.
    """

    def __init__(self, provider: trace.TracerProvider | None) -> None:
        check_has("tracer_provider", provider, "get_tracer")
        stands_in = isinstance(provider, trace.ProxyTracerProvider)
        self.provider: trace.TracerProvider | None = None if stands_in else provider
        # In one piece, so that no other thread finds half of it.
        self._found: tuple[trace.TracerProvider | None, trace.Tracer | None]
        self._found = None, None

    def get(self) -> trace.Tracer | None:
        """Return the tracer, or None where it would do nothing."""
        provider = self.provider
        if provider is None:
            provider = trace.get_tracer_provider()
        asked, tracer = self._found
        if provider is not asked:
            tracer = None
            if not _is_mute(provider):
                made = provider.get_tracer(_SCOPE, __version__, _SCHEMA)
                tracer = None if _is_mute(made) else made
            self._found = provider, tracer
        return tracer


class Meters(Generic[I]):
    """Finds the instruments, also when they are set up later.

    Args:
        provider: Who makes the meter; None for the global one.
        new_instruments: Makes the instruments of a meter.
    """

    def __init__(
        self,
        provider: metrics.MeterProvider | None,
        new_instruments: Callable[[metrics.Meter], I],
    ) -> None:
        check_has("meter_provider", provider, "get_meter")
        is_no_op = isinstance(provider, metrics.NoOpMeterProvider)
        stands_in = _is_mute(provider) and not is_no_op
        self.provider: metrics.MeterProvider | None = None if stands_in else provider
        self._new_instruments = new_instruments
        self._found: tuple[metrics.MeterProvider | None, I | None] = None, None

    def get(self) -> I | None:
        """Return the instruments, or None where they would do nothing."""
        provider = self.provider
        if provider is None:
            provider = metrics.get_meter_provider()
        asked, instruments = self._found
        if provider is not asked:
            instruments = None
            if not _is_mute(provider):
                meter = provider.get_meter(_SCOPE, __version__, _SCHEMA)
                if not _is_mute(meter):
                    instruments = self._instruments_of(provider, meter)
            self._found = provider, instruments
        return instruments

    def _instruments_of(
        self, provider: metrics.MeterProvider, meter: metrics.Meter
    ) -> I:
        with _lock:
            try:
                made = _shared.setdefault(provider, {})
            except TypeError:
                # A provider of somebody's own need not be hashable.
                made = {}
            if self._new_instruments not in made:
                made[self._new_instruments] = self._new_instruments(meter)
            instruments: I = made[self._new_instruments]
            return instruments


def check_has(name: str, value: Any, function: str) -> None:
    """Refuse an argument that is neither None nor an object with a function.

    Raises:
        ValueError: It is neither; a class is none, though it has the function too.
    """
    if value is None:
        return
    if isinstance(value, type) or not callable(getattr(value, function, None)):
        raise bad_argument(name, value, f"None, or an object with {function}()")


def _is_mute(found: object) -> bool:
    # What the API itself makes does nothing; what does something is of an SDK.
    return type(found).__module__.startswith(_API)
