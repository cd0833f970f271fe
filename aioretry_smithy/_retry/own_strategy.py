"""Smithy strategies of this library, as the retrying client finds them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ..smithy import sync
from ..smithy.adaptive import AdaptiveRetryStrategy
from ..smithy.interfaces import METHODS
from ..smithy.standard import StandardRetryStrategy

if TYPE_CHECKING:
    from ..smithy.standard_mode import StandardMode

_KINDS = (
    AdaptiveRetryStrategy,
    StandardRetryStrategy,
    sync.AdaptiveRetryStrategy,
    sync.StandardRetryStrategy,
)


def own_strategy(strategy: Any) -> StandardMode | None:
    """Return a strategy that can be asked by way of what its methods are made of.

    That is one of ours, unless something stands in the place of one of the methods:
    who overrides a method wants it to be called. The methods may wait, their parts do
    not.
    """
    kind: Any = type(strategy)
    if _inherits_methods(kind) and vars(strategy).keys().isdisjoint(METHODS):
        return strategy  # type: ignore[no-any-return]
    return None


def holds_up_the_loop(strategy: object) -> bool:
    """Say whether a strategy would let the thread sleep, and the event loop with it."""
    return (
        isinstance(strategy, sync.StandardRetryStrategy)
        and strategy._waits
        and own_strategy(strategy) is None
    )


@cache
def _inherits_methods(kind: Any) -> bool:
    for ours in _KINDS:
        if issubclass(kind, ours):
            return all(getattr(kind, name) is getattr(ours, name) for name in METHODS)
    return False
