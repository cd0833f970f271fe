"""Find the answer of a server, or of a proxy, in an exception raised for its status.

A middleware, a decorator or a function that is retried may raise in place of returning
a response. Such an exception is judged as the response would have been.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import aiohttp

from .any_headers import as_headers
from .frames import is_unreadable_answer

if TYPE_CHECKING:
    from multidict import MultiMapping

_ERROR: Final = 400

ABOVE_ANSWERS: Final = frozenset(aiohttp.ClientResponseError.__mro__[1:])
"""The classes above that of what is raised for an answer: they tell no status."""


class RaisedAnswer(NamedTuple):
    """The status and the headers of an answer that was raised."""

    status: int
    headers: MultiMapping[str]

    is_of_tunnel: bool
    """Whether it is a proxy's, which opens no tunnel to the server."""

    @classmethod
    def of(cls, error: BaseException) -> RaisedAnswer | None:
        """Return the answer of a server or of a proxy in an exception; None without.

        That is a status of 400 or more: an endless redirect, a body of the wrong type
        and an answer that is not HTTP are failures. Of a proxy that opens no tunnel it
        is any.
        """
        if not isinstance(error, aiohttp.ClientResponseError):
            return None
        status = getattr(error, "status", None)
        is_of_tunnel = isinstance(error, aiohttp.ClientHttpProxyError)
        lowest = 1 if is_of_tunnel else _ERROR
        if not isinstance(status, int) or status < lowest:
            return None
        if is_unreadable_answer(error):
            return None
        headers = as_headers(getattr(error, "headers", None))
        return cls(int(status), headers, is_of_tunnel)
