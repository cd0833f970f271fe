"""What becomes of the connections of a pool while calls are made, by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import aiohttp
from fault_server import Fault, response
from pool_server import BREAKS, CLOSE, RESET, PoolServer


@dataclass(frozen=True)
class Call:
    """One call, told from others by its path and its body."""

    method: str
    number: int

    @property
    def path(self) -> str:
        """Where it goes; a name in the path says it to the server."""
        return f"/{self.method}/{self.number}"

    @property
    def body(self) -> bytes:
        """What it sends."""
        return b"" if self.method == "GET" else self.path.encode() * 500

    async def send(self, session: aiohttp.ClientSession) -> bool:
        """Make the call, and say whether it was answered, by its own answer."""
        data = self.body or None
        try:
            async with session.request(self.method, self.path, data=data) as response:
                assert self.path == await response.text()

                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


def begin(session: Any, calls: Iterable[Call]) -> list[asyncio.Task[bool]]:
    """Begin calls together; none has got further than to be scheduled."""
    return [asyncio.create_task(call.send(session)) for call in calls]


Story = Callable[[PoolServer, aiohttp.ClientSession, list[Call]], Any]


def restart(how: Any) -> Story:
    """Break all connections when all of the calls have arrived."""

    async def fault(server: PoolServer, session: Any, calls: list[Call]) -> list[bool]:
        before = server.processed
        with server.holding():
            tasks = begin(session, calls)
            await server.arrived(before + len(calls))
            server.drop(how)
        return await asyncio.gather(*tasks)

    return fault


def silence(how: Any) -> Story:
    """Leave connections of the pool stale, which shows only when they are used."""

    async def fault(server: PoolServer, session: Any, calls: list[Call]) -> list[bool]:
        server.leave_stale(how)
        return await asyncio.gather(*begin(session, calls))

    return fault


def farewell(how: Any, noticed: float | None = None) -> Story:
    """Drop the idle connections, just as the calls begin or when that was noticed."""

    async def fault(server: PoolServer, session: Any, calls: list[Call]) -> list[bool]:
        server.drop(how)
        if noticed is not None:
            await asyncio.sleep(noticed)
        return await asyncio.gather(*begin(session, calls))

    return fault


async def restart_half_way(
    server: PoolServer, session: Any, calls: list[Call]
) -> list[bool]:
    """Answer every other call, then break all connections, idle or not."""
    quick = asyncio.Event()
    for call in calls[1::2]:
        answer = response(200, call.path.encode())
        server.scripts[call.path] = [Fault(send=(quick, answer))]
    before = server.processed
    with server.holding():
        tasks = begin(session, calls)
        await server.arrived(before + len(calls))
        quick.set()
        await asyncio.gather(*tasks[1::2])
        server.drop(RESET)
    return await asyncio.gather(*tasks)


async def down_for_a_moment(
    server: PoolServer, session: Any, calls: list[Call]
) -> list[bool]:
    """Break all connections when the calls have arrived, and refuse new ones."""
    before = server.processed
    with server.holding():
        tasks = begin(session, calls)
        await server.arrived(before + len(calls))
        server.drop(RESET)
        async with server.closed_port():
            await asyncio.sleep(0.03)
    return await asyncio.gather(*tasks)


FAULTS: dict[str, Story] = {
    **{f"restart, {name}": restart(how) for name, how in BREAKS.items()},
    **{f"silence, {name}": silence(how) for name, how in BREAKS.items()},
    "farewell as calls begin, closed": farewell(CLOSE),
    "farewell as calls begin, reset": farewell(RESET),
    "farewell that was noticed": farewell(CLOSE, 0.02),
    "restart half way": restart_half_way,
    "down for a moment": down_for_a_moment,
}
"""By name: what happens to the connections."""

LEFT_TO_CHANCE = {"down for a moment"}
"""Where a bare session saves what it happens to send again when the port is open."""

FRESH_BREAKS = {name for name in FAULTS if name.startswith(("restart", "down"))}
"""Where also connections break on which nothing was sent before."""
