"""Get tracers and meters, and find out whether a provider is set up."""

from __future__ import annotations

from abc import ABC, abstractmethod
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

P = TypeVar("P")
V = TypeVar("V")

# An SDK keeps the first instrument of a name, and does not ask those who come later
# with another one; so there is one of each kind for all.
_shared: WeakKeyDictionary[Any, dict[object, Any]] = WeakKeyDictionary()
_lock = Lock()


class Provided(ABC, Generic[P, V]):
    """Makes a tracer or a meter when its provider is set up, also later.

    Args:
        name: What the argument is called.
        provider: Who makes it; None for the global one.
        function: What it makes it with.
        current: Returns the global provider.
    """

    provider: P | None
    """Who makes it; None for the global provider, or what stands in for it."""

    def __init__(
        self, name: str, provider: P | None, function: str, current: Callable[[], P]
    ) -> None:
        check_has(name, provider, function)
        self.provider = None if self._stands_in(provider) else provider
        self._current = current
        # In one piece, so that no other thread finds half of it.
        self._found: tuple[P | None, V | None] = None, None

    def get(self) -> V | None:
        """Return what is made, or None where it would do nothing."""
        provider = self._current() if self.provider is None else self.provider
        asked, made = self._found
        if provider is not asked:
            made = None if _is_mute(provider) else self._make(provider)
            self._found = provider, made
        return made

    @abstractmethod
    def _stands_in(self, provider: P | None) -> bool: ...

    @abstractmethod
    def _make(self, provider: P) -> V | None: ...


class Tracers(Provided[trace.TracerProvider, trace.Tracer]):
    """Finds the tracer.

    Args:
        provider: Who makes it; None for the global one.
    """

    def __init__(self, provider: trace.TracerProvider | None) -> None:
        super().__init__(
            "tracer_provider", provider, "get_tracer", trace.get_tracer_provider
        )

    def _stands_in(self, provider: trace.TracerProvider | None) -> bool:
        return isinstance(provider, trace.ProxyTracerProvider)

    def _make(self, provider: trace.TracerProvider) -> trace.Tracer | None:
        tracer = provider.get_tracer(_SCOPE, __version__, _SCHEMA)
        return None if _is_mute(tracer) else tracer


class Meters(Provided[metrics.MeterProvider, V]):
    """Finds the instruments.

    Args:
        provider: Who makes the meter; None for the global one.
        new_instruments: Makes the instruments of a meter.
    """

    def __init__(
        self,
        provider: metrics.MeterProvider | None,
        new_instruments: Callable[[metrics.Meter], V],
    ) -> None:
        super().__init__(
            "meter_provider", provider, "get_meter", metrics.get_meter_provider
        )
        self._new_instruments = new_instruments

    def _stands_in(self, provider: metrics.MeterProvider | None) -> bool:
        is_no_op = isinstance(provider, metrics.NoOpMeterProvider)
        return _is_mute(provider) and not is_no_op

    def _make(self, provider: metrics.MeterProvider) -> V | None:
        meter = provider.get_meter(_SCOPE, __version__, _SCHEMA)
        return None if _is_mute(meter) else self._instruments_of(provider, meter)

    def _instruments_of(
        self, provider: metrics.MeterProvider, meter: metrics.Meter
    ) -> V:
        with _lock:
            try:
                made = _shared.setdefault(provider, {})
            except TypeError:
                # A provider of somebody's own need not be hashable.
                made = {}
            if self._new_instruments not in made:
                made[self._new_instruments] = self._new_instruments(meter)
            instruments: V = made[self._new_instruments]
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
