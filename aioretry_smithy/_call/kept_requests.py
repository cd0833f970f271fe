"""Keep the first and the last requests of a call, and count those between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from .outcome import Outcome
    from .record import Record

    _Sent = TypeVar("_Sent", bound=Record)

_KEPT: Final = 50
MOST_KEPT: Final = 2 * _KEPT
"""So many requests of a call are kept: half of them the first, half the last."""


@dataclass(frozen=True, slots=True)
class DroppedRequests:
    """The requests of a call that are not kept any more."""

    count: int = 0

    hedges: int = 0
    """The number of dropped requests that were hedges."""

    last_number: int = 0
    """The highest of their numbers."""

    were_sent: bool = False
    """Whether a server may have seen one of the dropped requests."""

    def may_be_sent_after(self, number: int) -> bool:
        """Say whether one was sent, perhaps one after that number."""
        return self.were_sent and self.last_number > number

    def with_one_of(self, sent: list[_Sent], outcome: Outcome) -> DroppedRequests:
        """Drop the first request of the middle that is over.

        That with the *outcome* of the call is kept, and what is under way.
        """
        for place in range(_KEPT, len(sent) - _KEPT):
            record = sent[place]
            if record.outcome.ended is not None and record.outcome is not outcome:
                del sent[place]
                is_hedge = record.is_hedge and not record.was_sent_again
                return DroppedRequests(
                    self.count + 1,
                    self.hedges + is_hedge,
                    max(self.last_number, record.number or 0),
                    self.were_sent or record.was_sent,
                )
        return self


NONE_DROPPED: Final = DroppedRequests()
