"""Call through a real chain, and count the calls, answers and requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from .._session.install import send_with
from .wire import SimulatedWire

if TYPE_CHECKING:
    from .._session.builder import SessionBuilder
    from .server import SimulatedServer


class Counts:
    """Counts calls, and what becomes of them, by second."""

    calls: Counter[int]
    """The calls that began, by second."""

    answered: Counter[int]
    """The calls of these that were answered with a status < 400."""

    attempts: Counter[int]
    """The requests that were sent, by second."""

    def __init__(self) -> None:
        self.calls, self.answered, self.attempts = Counter(), Counter(), Counter()


class SimulatedProcess(Counts):
    """One client of the server: a process with a session of its own.

    Args:
        builder: Makes the session.
        server: The server that its requests go to.
    """

    def __init__(self, builder: SessionBuilder, server: SimulatedServer) -> None:
        super().__init__()
        self.session = builder.build()
        base_url = URL(builder._base_url or "http://server.example")
        self._url = str(base_url.join(URL("/")))
        wire = SimulatedWire(server, self.attempts, self.session.timeout)
        send_with(self.session, wire.request)

    def begin(self, calls: asyncio.TaskGroup) -> None:
        """Begin a call."""
        calls.create_task(self.call())

    async def call(self) -> None:
        """Make one call.

        Raises:
            Exception: The chain has raised what is no failure of a request.
        """
        second = int(asyncio.get_running_loop().time())
        self.calls[second] += 1
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self.session.get(self._url) as response:
                self.answered[second] += response.status < 400
