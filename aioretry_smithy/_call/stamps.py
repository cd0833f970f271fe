"""Hold what decorators have put on the requests of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .._request.own_hosts import OwnHosts
    from .._request.request import HttpRequest


class IdempotencyKey(NamedTuple):
    """The key by which a server recognises a request that it has seen."""

    header: str
    """The name of the header that has it."""

    value: str | None
    """The key that was made; None where the caller brings one."""

    request: HttpRequest
    """The request that the key was made for, as the caller sent it."""

    def is_for(self, request: HttpRequest) -> bool:
        """Say whether a request is the same one, perhaps with other headers."""
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
