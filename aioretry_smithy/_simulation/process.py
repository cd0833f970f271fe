"""Call a simulated server through a real chain, or by a plain loop, and count."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from errno import ECONNREFUSED
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
from yarl import URL

from .._bodies.new_response import new_response
from .._errors import bad_argument
from .._policies.backoff import Backoff
from .._request.request import HttpRequest
from .._session.deadline import limit_of
from .._session.install import send_with
from .replicas import Directory, bases_of
from .result import Counts
from .server import CUT, REFUSED

if TYPE_CHECKING:
    from aiohttp.typedefs import StrOrURL

    from .._session.builder import SessionBuilder
    from .replicas import SimulatedReplicas

PATIENCE = 1.0
"""Seconds that each attempt waits for an answer."""

LONGEST = 60.0
"""More seconds than any call takes, with all its attempts and delays."""


class SimulatedProcess(Counts):
    """One client of the server: a process with a session of its own.

    Args:
        builder: Makes the session.
        replicas: The servers that its requests go to. Where the builder has a group,
            its endpoints stand for them, in their order.

    Raises:
        ValueError: There are not as many endpoints as servers, or they have no URLs of
            their own.
    """

    def __init__(self, builder: SessionBuilder, replicas: SimulatedReplicas) -> None:
        super().__init__()
        bases, group = None, builder._group
        if group is None:
            base_url = URL(builder._base_url or "http://server.example")
            self._url = str(base_url.join(URL("/")))
        else:
            bases, self._url = bases_of(group), "/"
            if bases is None or len(bases) != len(replicas):
                expected = (
                    f"endpoints with URLs of their own, as many as replicas,"
                    f" {len(replicas)}"
                )
                raise bad_argument("group", group, expected)
        self.session = builder.build()
        wire = SimulatedWire(
            replicas, Directory(replicas, bases), self, self.session.timeout
        )
        send_with(self.session, wire.request)

    def begin(self, calls: asyncio.TaskGroup) -> None:
        """Begin a call."""
        calls.create_task(self.call())

    async def call(self) -> None:
        """Make a call.

        Raises:
            Exception: The chain has raised what is no failure of a request.
        """
        second = int(asyncio.get_running_loop().time())
        self.calls[second] += 1
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self.session.get(self._url) as response:
                self.answered[second] += response.status < 400


@dataclass(frozen=True)
class SimulatedWire:
    """The simulated network: delivers requests, with their timeouts.

    Args:
        replicas: What answers.
        directory: Says which of them does.
        counts: Counts the requests.
        timeout: The session's, for requests without one of their own.
    """

    replicas: SimulatedReplicas
    directory: Directory
    counts: Counts
    timeout: aiohttp.ClientTimeout

    async def request(
        self, method: str, url: StrOrURL, **arguments: Any
    ) -> aiohttp.ClientResponse:
        """Stand in for the method of the session that sends a request."""
        now = asyncio.get_running_loop().time()
        number = self.directory.number_of(str(url))
        self.counts.note_request(number, int(now))
        status, ready_at = self.replicas.servers[number].serve(now)
        if status == REFUSED:
            raise _refused(URL(url))
        timeout = arguments.get("timeout", self.timeout)
        limit = limit_of(getattr(timeout, "total", timeout))
        if limit is not None and ready_at - now > limit:
            await asyncio.sleep(limit)
            raise TimeoutError
        await asyncio.sleep(ready_at - now)
        if status == CUT:
            raise aiohttp.ServerDisconnectedError
        return new_response(HttpRequest(method, url, **arguments), status)


def _refused(url: URL) -> aiohttp.ClientConnectorError:
    """Make the error of a server that takes no connections."""
    # All of a key that the error shows.
    key: Any = SimpleNamespace(host=url.host, port=url.port, ssl=True)
    refusal = ConnectionRefusedError(ECONNREFUSED, "Connect call failed")
    return aiohttp.ClientConnectorError(key, refusal)


class PlainLoop(Counts):
    """Sends a request up to so many times, after exponential delays with full jitter.

    The counts are those of a retrying client without a budget in a session, at a
    fraction of the cost, because a retry storm is hundreds of thousands of attempts.
    Its calls share nothing, so that one stands for any number of processes.

    Args:
        max_total_attempts: The attempts of a call, the first one included.
        replicas: The servers; each request goes to any of them.
    """

    def __init__(self, max_total_attempts: int, replicas: SimulatedReplicas) -> None:
        super().__init__()
        self._max_total_attempts = max_total_attempts
        self._replicas = replicas
        self._backoff = Backoff.exponential(0.1, 20.0).with_full_jitter()
        self._loop = asyncio.get_running_loop()

    def begin(self, calls: asyncio.TaskGroup) -> None:
        """Begin a call."""
        second = int(self._loop.time())
        self.calls[second] += 1
        self._attempt(second, 1)

    def _attempt(self, second: int, number: int) -> None:
        now = self._loop.time()
        replica = self._replicas.any()
        self.note_request(replica, int(now))
        status, ready_at = self._replicas.servers[replica].serve(now)
        if ready_at - now > PATIENCE:
            self._loop.call_at(now + PATIENCE, self._fail, second, number)
        elif REFUSED < status < 400:
            self.answered[second] += 1
        else:
            self._loop.call_at(ready_at, self._fail, second, number)

    def _fail(self, second: int, number: int) -> None:
        if number < self._max_total_attempts:
            delay = self._backoff.next_delay(number) or 0.0
            self._loop.call_later(delay, self._attempt, second, number + 1)
