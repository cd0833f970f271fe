"""Keep the bodies and responses of a call, and close them at its end."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from .response_facts import connection_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import aiohttp

    from .stamps import BoundHeader, IdempotencyKey
    from .upload import SerializedJson


NONE_BOUND: Final[Mapping[str, BoundHeader]] = MappingProxyType({})


class ReplayableBody(Protocol):
    """A body that several attempts of a call can send, or what tracks one."""

    source: object
    """The caller's own object."""

    async def end(self) -> None:
        """Close the body if aiohttp wanted to close it; end its tracker."""
        ...


class CallResources:
    """The bodies and the responses that a call closes, and what it may use once.

    Made only for calls that have one of these; see :meth:`.Call.own_resources`.
    """

    bodies: Sequence[ReplayableBody] = ()
    """The wrapped bodies of the call, and what tracks their uploads."""

    json: list[SerializedJson]
    """The values of ``json=``, each with the text that its first body had."""

    bound_headers: Mapping[str, BoundHeader] = NONE_BOUND
    """The headers that go to certain servers alone, by their names in lower case."""

    key: IdempotencyKey | None = None
    """The key by which a server recognises the request of the call."""

    key_stayed: bool = False
    """Whether a redirect led the last request to a server that did not get the key."""

    _responses: Sequence[tuple[aiohttp.ClientResponse, object]] = ()
    _used: Sequence[object] = ()

    def __init__(self) -> None:
        self.json = []

    async def close_bodies(self) -> None:
        """Close the bodies that aiohttp wanted to close, and end their trackers."""
        bodies, self.bodies = self.bodies, ()
        for body in bodies:
            await body.end()

    def track(self, response: aiohttp.ClientResponse, owner: object = None) -> None:
        """Remember a response whose connection is in use, in case the call fails.

        It may have an *owner*, which is sent for, and be closed with that one alone.
        """
        open_ones = [each for each in self._responses if connection_of(each[0])]
        self._responses = [*open_ones, (response, owner)]

    def close_responses(self, owner: object = None) -> None:
        """Close responses that a decorator may have left open when the call failed.

        Or, when what an *owner* was sent for is given up, only those that it has.
        """
        for response, its_owner in self._responses:
            if owner is None or owner is its_owner:
                response.close()

    def bind(self, header: BoundHeader) -> None:
        """Let a header go to certain servers alone from now on."""
        self.bound_headers = {**self.bound_headers, header.name.lower(): header}

    def use_once(self, used: object) -> bool:
        """Mark an object as used; return False if it was used in this call before."""
        if any(earlier is used for earlier in self._used):
            return False
        self._used = (*self._used, used)
        return True
