"""Tell the visits of endpoints where aiohttp goes: one class of requests does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import ClientRequest

from .._endpoints.visit import note_hop
from .request_classes import RequestClasses
from .uploads import measured

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from yarl import URL


def follow_hops(session: ClientSession) -> None:
    """Make the requests of a session say where they go, each hop after a redirect."""
    session._request_class = _following.of(session._request_class)


def _members(kind: type[ClientRequest]) -> dict[str, object]:
    # Each request is told where it goes when it is made, before it is sent; this takes
    # fewer arguments than its __init__() does.
    def update_host(self: ClientRequest, url: URL) -> None:
        kind.update_host(self, url)
        # All hops of one call of aiohttp's have one timer.
        note_hop(url, getattr(self, "_timer", None))

    return {"update_host": update_host}


_following = RequestClasses(_members)
# It lives on, as most sessions of groups have it.
_of_aiohttp = _following.of(measured.of(ClientRequest))
