"""Wake the next request that waits for a connection of the pool.

aiohttp wakes one when a connection comes back. Where that one is cancelled before it
runs, its turn is lost: the others wait beside a free place, until another connection
comes back. A hedge that has lost its race is cancelled like that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

if TYPE_CHECKING:
    from aiohttp import ClientSession


def wake_next(session: ClientSession | None) -> None:
    """Wake the next request of a pool that has a free place, if one waits there."""
    connector = None if session is None else session.connector
    if isinstance(connector, aiohttp.BaseConnector):
        connector._release_waiter()
