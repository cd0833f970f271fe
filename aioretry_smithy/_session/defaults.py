"""Copy what the calls of a session begin with, once for many of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multidict import getversion

from .._call.call import CallDefaults
from .deadline import limit_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import ClientSession, ClientTimeout

    from .._masking.mask import Mask


version_of: Callable[[Any], int] = getversion
"""Return a number that no headers have had before, and that each change replaces."""


class SessionDefaults(CallDefaults):
    """What the calls of a session begin with, as long as nobody changes that.

    Args:
        session: The session.
        mask: What the views of its calls hide.
    """

    __slots__ = ("limit", "timeout")

    limit: float | None
    """Seconds that a call may take; None for no limit."""

    timeout: ClientTimeout
    """The timeout that has this limit."""

    def __init__(self, session: ClientSession, mask: Mask) -> None:
        headers = session._default_headers
        super().__init__(mask, headers.copy())
        self.version = version_of(headers)
        self.timeout = session.timeout
        self.limit = limit_of(self.timeout.total)
