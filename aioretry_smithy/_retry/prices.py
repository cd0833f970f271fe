"""Say what a retry costs a budget, and what the failure before it weighs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from .._call.tries import is_unserved

if TYPE_CHECKING:
    from .._context.context import ClientRequestContext

_SERVED: Final = 1.0


class RetryPrices:
    """The price of a retry, by what the failure before it has cost the server.

    What was paid is known as long as the attempt is.

    Args:
        unserved_cost: The price after a failure that has cost the server nothing.
    """

    def __init__(self, unserved_cost: float) -> None:
        self.unserved_cost = unserved_cost
        self._paid: WeakKeyDictionary[ClientRequestContext, float] = WeakKeyDictionary()

    def of(self, ctx: ClientRequestContext, cause: Exception | None) -> float:
        """Return the price of a retry of an attempt, which is its weight as well."""
        if self.unserved_cost == _SERVED:
            return _SERVED
        is_cheap = is_unserved(ctx.call, ctx.record, cause)
        return self.unserved_cost if is_cheap else _SERVED

    def note(self, ctx: ClientRequestContext, price: float) -> None:
        """Note what the retry of an attempt was paid with."""
        if self.unserved_cost != _SERVED:
            self._paid[ctx] = price

    def paid_for(self, ctx: ClientRequestContext) -> float:
        """Return what was paid for the retry of an attempt."""
        return self._paid.get(ctx, _SERVED)
