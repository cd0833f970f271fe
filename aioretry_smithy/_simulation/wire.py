"""Carry requests to the simulated server, in place of aiohttp."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .._bodies.new_response import new_response
from .._request.request import HttpRequest
from .._session.deadline import limit_of

if TYPE_CHECKING:
    from collections import Counter

    import aiohttp
    from aiohttp.typedefs import StrOrURL

    from .server import SimulatedServer


class SimulatedWire:
    """Sends requests, and waits for each as long as its timeout allows.

    Args:
        server: What answers.
        sent: Counts the requests by second.
        timeout: The session's, for requests without one of their own.
    """

    def __init__(
        self,
        server: SimulatedServer,
        sent: Counter[int],
        timeout: aiohttp.ClientTimeout,
    ) -> None:
        self._server = server
        self._sent = sent
        self._timeout = timeout

    async def request(
        self, method: str, url: StrOrURL, **arguments: Any
    ) -> aiohttp.ClientResponse:
        """Stand in for the method of the session that sends a request."""
        now = asyncio.get_running_loop().time()
        self._sent[int(now)] += 1
        status, ready_at = self._server.serve(now)
        timeout = arguments.get("timeout", self._timeout)
        limit = limit_of(getattr(timeout, "total", timeout))
        if limit is not None and ready_at - now > limit:
            await asyncio.sleep(limit)
            raise TimeoutError
        await asyncio.sleep(ready_at - now)
        return new_response(HttpRequest(method, url, **arguments), status)
