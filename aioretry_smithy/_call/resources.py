"""Resources of a call: bodies and responses to close, bound headers, the key."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from .outcome import connection_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import aiohttp

    from .._request.keys import OwnHosts
    from .._request.request import HttpRequest
    from .record import SerializedJson


class IdempotencyKey(NamedTuple):
    """An idempotency key, by which a server recognises repeated requests."""

    header: str
    """The name of the header that carries the key."""

    value: str | None
    """The generated key; None if the caller's key is used."""

    request: HttpRequest
    """The request of the caller that the key was made for."""

    def is_for(self, request: HttpRequest) -> bool:
        """Say whether the key was made for *request*, apart from headers."""
        own, others = self.request.arguments, request.arguments
        return (
            self.request.method == request.method
            and own.get("data") is others.get("data")
            and own.get("json") is others.get("json")
            and self.request.full_url() == request.full_url()
        )

    def was_made_for(self, request: HttpRequest) -> bool:
        """Say whether a request carries the key that was made."""
        return self.value is not None and self.value == request.headers.get(self.header)


class BoundHeader(NamedTuple):
    """A header that goes neither to other servers nor along with a redirect to one."""

    name: str
    hosts: OwnHosts


NONE_BOUND: Final[Mapping[str, BoundHeader]] = MappingProxyType({})


class ReplayableBody(Protocol):
    """A body that several attempts of a call can send, or the tracker of a body."""

    source: object
    """The caller's own object."""

    async def end(self) -> None:
        """Close the body if aiohttp wanted to close it; end its tracker."""
        ...


class CallResources:
    """Bodies and responses closed at the end of a call, and single-use objects.

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
