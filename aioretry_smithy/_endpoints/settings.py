"""Hold the settings that all kinds of groups have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypedDict

from .._breaker.strategy import CircuitBreakerStrategy
from .._errors import bad_argument, check_positive, is_plain_function
from .listener import EndpointGroupListener
from .outliers import OutlierDetection
from .selection import EndpointSelectionStrategy

_USUAL: Final = CircuitBreakerStrategy.on_server_error_status()

USUAL_WAIT: Final = 3.2
"""Seconds that a request waits for an endpoint, unless told otherwise."""


class Settings(TypedDict, total=False):
    """The settings as arguments, for type checkers."""

    selection: EndpointSelectionStrategy
    outlier_detection: OutlierDetection | None
    name: str | None
    listener: EndpointGroupListener | None
    selection_timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The settings that all kinds of groups have.

    Args:
        selection: Chooses an endpoint for each request.
        outlier_detection: Says which endpoints are to be left alone; None for none.
        name: The name of the group; None for one made of its endpoints.
        listener: Hears of changes.
        selection_timeout: Seconds that a request waits for an endpoint, > 0.

    Raises:
        ValueError: An argument is not as described.
    """

    selection: EndpointSelectionStrategy = field(
        default_factory=EndpointSelectionStrategy.peak_ewma
    )
    outlier_detection: OutlierDetection | None = field(default_factory=OutlierDetection)
    name: str | None = None
    listener: EndpointGroupListener | None = None
    selection_timeout: float = USUAL_WAIT

    def __post_init__(self) -> None:
        if not isinstance(self.selection, EndpointSelectionStrategy):
            expected = "an EndpointSelectionStrategy"
            raise bad_argument("selection", self.selection, expected)
        if not is_plain_function(self.selection.select):
            raise bad_argument("selection", self.selection, "with a plain select()")
        if not (
            self.outlier_detection is None
            or isinstance(self.outlier_detection, OutlierDetection)
        ):
            expected = "an OutlierDetection or None"
            raise bad_argument("outlier_detection", self.outlier_detection, expected)
        if not (
            self.listener is None or isinstance(self.listener, EndpointGroupListener)
        ):
            expected = "an EndpointGroupListener or None"
            raise bad_argument("listener", self.listener, expected)
        check_positive("selection_timeout", self.selection_timeout)

    @property
    def strategy(self) -> CircuitBreakerStrategy:
        """Says what a failure is, also where nothing is ejected."""
        detection = self.outlier_detection
        return (None if detection is None else detection.strategy) or _USUAL

    def __str__(self) -> str:
        detection = self.outlier_detection
        return f"selection={self.selection!r}, outlier_detection={detection!r}"
