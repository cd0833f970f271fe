"""Keep the bodies and responses of a call, and give them back at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from aiohttp.payload import Payload

if TYPE_CHECKING:
    from collections.abc import Sequence

    import aiohttp


Notes: TypeAlias = list[tuple[object, Callable[[], Payload]]]
"""Objects that were given as JSON, each with what makes its body again."""


class HeldBody(Protocol):
    """A body that is held from the first attempt of a call to the last."""

    source: object
    """What the caller gave."""

    async def end(self) -> None:
        """Close it if aiohttp would have."""
        ...


class CallResources:
    """The bodies, the responses and the objects of a call that need care.

    Made for calls that have something of the kind; see :func:`resources_of`.
    """

    bodies: Sequence[HeldBody] = ()
    """What is sent again with care."""

    json: Notes
    """What was given as JSON, each with what makes the body that it was first."""

    _responses: Sequence[aiohttp.ClientResponse] = ()
    _used: Sequence[object] = ()

    def __init__(self, json: Notes | None = None) -> None:
        self.json = [] if json is None else json

    async def close_bodies(self) -> None:
        """End the bodies: what aiohttp wanted closed is closed now."""
        bodies, self.bodies = self.bodies, ()
        for held in bodies:
            await held.end()

    def track(self, response: aiohttp.ClientResponse) -> None:
        """Remember a response whose connection is in use, in case the call fails."""
        tracked = [each for each in self._responses if each.connection is not None]
        self._responses = [*tracked, response]

    def close_responses(self) -> None:
        """Close what a decorator may have had in its hands when the call failed."""
        for response in self._responses:
            response.close()

    def use_once(self, used: object) -> bool:
        """Say whether something that can be used once in a call was still unused."""
        if any(earlier is used for earlier in self._used):
            return False
        self._used = (*self._used, used)
        return True
