"""Count the hedges of a call from its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._hedging.hedged_request import is_good

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._call.call import Call
    from .._call.record import Sent

HEDGES: Final[Mapping[str, str]] = {
    "sent": "Hedges: requests sent beside one that was under way or had failed.",
    "won": "Hedges whose answer was good and came first.",
    "refused": "Hedges that a limiter gave no leave for.",
}
"""The counts, each with its description."""


class HedgeCount:
    """The hedges of a call, or of a part of it that begins here."""

    __slots__ = ("_before", "_refused")

    def __init__(self, call: Call) -> None:
        self._before = len(call.sent)
        self._refused = call.refused_hedges

    def since(self, call: Call) -> dict[str, int]:
        """Return how many there were, by the names of :data:`HEDGES`."""
        sent = call.sent[self._before :]
        hedges = [each for each in sent if each.is_hedge and not each.was_stale]
        return {
            "sent": len(hedges),
            "won": sum(map(_has_won, hedges)),
            "refused": call.refused_hedges - self._refused,
        }


def _has_won(hedge: Sent) -> bool:
    status, race = hedge.outcome.status, hedge.race
    is_superseded = race is not None and race.is_superseded
    return status is not None and is_good(status) and not is_superseded
