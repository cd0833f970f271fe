"""Let the addresses of IPv6 serve where those of IPv4 cannot be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._failures.failure import failure_of
from .state import NO_CONNECTION, SILENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .state import EndpointState


def kind_of(cause: Exception | None) -> str | None:
    """Return how a failure says that an address is not reached; None if it does not."""
    failure = failure_of(cause)
    if failure.is_unprocessed:
        return NO_CONNECTION
    # Whether there was a connection before nobody can tell.
    return SILENCE if failure.kind.is_timeout else None


def serving(able: Sequence[EndpointState]) -> Sequence[EndpointState]:
    """Return those that may serve: the reserve only where no other can be reached.

    An address of IPv6 that cannot be reached from here would draw all requests while
    IPv4 is away.
    """
    first = without_reserve(able)
    if len(first) == len(able) or all(each.is_unreachable for each in first):
        return able
    return first


def none_is_reached(able: Sequence[EndpointState]) -> bool:
    """Say whether there is a reserve, and it cannot be reached either."""
    return has_reserve(able) and all(each.is_unreachable for each in able)


def has_reserve(able: Sequence[EndpointState]) -> bool:
    """Say whether one of them is of the reserve."""
    return any(each.is_reserve for each in able)


def without_reserve(able: Sequence[EndpointState]) -> Sequence[EndpointState]:
    """Return those that are not of the reserve."""
    return [each for each in able if not each.is_reserve]
