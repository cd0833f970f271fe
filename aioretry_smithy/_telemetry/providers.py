"""Get tracers and instruments, and find out whether a provider is set up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from opentelemetry import metrics, trace

from .. import __version__
from .._errors import bad_argument
from .registry import one_per_registry

if TYPE_CHECKING:
    from collections.abc import Callable

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
        is_mute = _is_mute(meter)
        return (
            None if is_mute else one_per_registry(provider, kind, lambda: kind(meter))
        )

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
