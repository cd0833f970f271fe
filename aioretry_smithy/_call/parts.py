"""Keep what the range requests of a resumed download need after the call has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .call import Call


class PartsToCome:
    """Keeps what the requests for further parts need, which a call gives up at its end.

    Args:
        call: The call, before its end.
    """

    __slots__ = ("_call", "_session")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._session = call.session

    def begin(self) -> None:
        """Begin a part: tries count from here."""
        call = self._call
        for last in call.sent[-1:]:
            call.tries_before = last.number
            call.switches = 0
            call.stays_at = None if last.route is None else last.route.endpoint
        call.session = self._session

    def end(self) -> None:
        """Release the session again, if the call is over."""
        call = self._call
        if call.is_over:
            call.session = call.resources = None

    def let_go(self) -> None:
        """Keep it no longer: no further part is asked for."""
        self._session = None
