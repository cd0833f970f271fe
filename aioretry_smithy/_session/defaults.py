"""Copy the settings of a session with which calls begin, and find their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from multidict import CIMultiDict, getversion

from .._call.call import CallDefaults
from .deadline import limit_of

if TYPE_CHECKING:
    from aiohttp import ClientSession, ClientTimeout
    from yarl import URL

    from .._request.endpoint import Service
    from .._text.mask import Mask


_number_of_change: Final[Any] = getversion
"""Returns a number that no headers have had before, and that each change replaces."""


def version_of(headers: CIMultiDict[str]) -> object:
    """Return a value that is another after each change of a session's headers."""
    try:
        return _number_of_change(headers)
    except TypeError:
        # aiohttp takes any mapping; others than multidict's do not count changes.
        return tuple(CIMultiDict(headers).items())


class SessionDefaults(CallDefaults):
    """Copies the headers and the limit of a session, with which its calls begin.

    Args:
        session: The session.
        mask: What the views of its calls hide.
        service: What relative URLs are joined to in place of its base URL, if anything.
        no_retries: Whether each of its calls makes one attempt.
    """

    __slots__ = ("base_url", "limit", "service", "timeout")

    base_url: URL | Service | None
    """What relative URLs are joined to."""

    limit: float | None
    """Seconds that a call may take; None for no limit."""

    timeout: ClientTimeout
    """The session's ``ClientTimeout``, the origin of the limit."""

    def __init__(
        self,
        session: ClientSession,
        mask: Mask,
        service: Service | None,
        *,
        no_retries: bool,
    ) -> None:
        headers = session._default_headers
        self.service = service
        self.base_url = session._base_url if service is None else service
        super().__init__(mask, CIMultiDict(headers), no_retries=no_retries)
        self.version = version_of(headers)
        self.timeout = session.timeout
        self.limit = limit_of(self.timeout.total)

    def of_now(self, session: ClientSession) -> Self:
        """Return the defaults anew, as those of the session have changed."""
        off = self.no_retries
        return type(self)(session, self.mask, self.service, no_retries=off)
