"""Count the hedges of a call from its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._hedging.hedged_request import is_good

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._log.request_log import RequestLog

HEDGES: Final[Mapping[str, str]] = {
    "sent": "Hedges: requests sent beside one that was under way or had failed.",
    "won": "Hedges whose answer was good and came first.",
    "refused": "Hedges that a limiter gave no leave for.",
}
"""The counts, each with its description."""


class HedgeCount:
    """The hedges of a call, or of a part of it that begins here."""

    __slots__ = ("_before", "_refused")

    def __init__(self, log: RequestLog) -> None:
        self._before = len(log.children)
        self._refused = log._call.refused_hedges

    def since(self, log: RequestLog) -> dict[str, int]:
        """Return how many there were, by the names of :data:`HEDGES`."""
        sent = log.children[self._before :]
        hedges = [each for each in sent if each.is_hedge and not each._was_stale]
        return {
            "sent": len(hedges),
            "won": sum(map(_has_won, hedges)),
            "refused": log._call.refused_hedges - self._refused,
        }


def _has_won(hedge: RequestLog) -> bool:
    status = hedge.response_status
    return status is not None and is_good(status) and not hedge.superseded
