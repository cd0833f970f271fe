"""Tell the visits of endpoints where aiohttp goes: one class of requests does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import ClientRequest

from .._endpoints.visit import note_hop
from .request_classes import RequestClasses

if TYPE_CHECKING:
    from aiohttp import ClientSession


def follow_hops(session: ClientSession) -> None:
    """Make the requests of a session say where they go, each hop after a redirect."""
    session._request_class = _following.of(session._request_class)


def _members(kind: Any) -> dict[str, Any]:
    def begin(self: Any, *arguments: Any, **options: Any) -> None:
        kind.__init__(self, *arguments, **options)
        # All hops of one call of aiohttp's have one timer.
        note_hop(self.original_url, options.get("timer"))

    return {"__init__": begin}


_following = RequestClasses(_members)
_of_aiohttp = _following.of(ClientRequest)
