"""Find the answer of a server, or of a proxy, in an exception raised for its status.

A middleware, a decorator or a function that is retried may raise in place of returning
a response. Such an exception is judged as the response would have been.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import aiohttp

from .any_headers import as_headers
from .frames import is_unreadable_answer
from .groups import peel
from .hints import retry_after
from .marks import raised_by_caller
from .retry_info import RetryInfo

if TYPE_CHECKING:
    from multidict import MultiMapping

_ERROR: Final = 400

ABOVE_ANSWERS: Final = frozenset(aiohttp.ClientResponseError.__mro__[1:])
"""The classes above that of what is raised for an answer: they tell no status."""


class RaisedAnswer(NamedTuple):
    """The status and the headers of an answer that was raised."""

    status: int
    headers: MultiMapping[str]


def answer_in(cause: BaseException | None) -> RaisedAnswer | None:
    """Return the answer of a server or of a proxy in an exception; None without one.

    That is a status of 400 or more: an endless redirect, a body of the wrong type and
    an answer that is not HTTP are failures. Of a proxy that opens no tunnel it is any.
    What the caller's own object raised is an answer to something else.
    """
    error = None if cause is None else peel(cause)
    if not isinstance(error, aiohttp.ClientResponseError):
        return None
    status = getattr(error, "status", None)
    if not isinstance(status, int) or status < _lowest(error):
        return None
    if is_unreadable_answer(error) or raised_by_caller(error):
        return None
    return RaisedAnswer(int(status), as_headers(getattr(error, "headers", None)))


def status_in(cause: BaseException | None) -> int | None:
    """Return the status of the answer in an exception; None without one."""
    answer = answer_in(cause)
    return None if answer is None else answer.status


def answer_of_server(cause: BaseException | None) -> RaisedAnswer | None:
    """Return the answer in an exception, if it is one of the server."""
    return None if cause is None or is_of_tunnel(cause) else answer_in(cause)


def status_of_server(cause: BaseException | None) -> int | None:
    """Return the status of that answer; a proxy's says nothing of the server."""
    answer = answer_of_server(cause)
    return None if answer is None else answer.status


def is_of_tunnel(cause: BaseException) -> bool:
    """Say whether a proxy has answered that it opens no tunnel to the server."""
    return isinstance(peel(cause), aiohttp.ClientHttpProxyError)


def hint_in(cause: BaseException, now: float | None = None) -> float | None:
    """Return the seconds that an exception asks to wait, or the answer in it.

    Args:
        cause: The exception.
        now: The time of day when it came, as for :func:`.retry_after`.
    """
    own = RetryInfo.of(peel(cause)).retry_after
    if own is not None:
        return own
    answer = answer_in(cause)
    return None if answer is None else retry_after(answer.headers, now=now)


def _lowest(error: aiohttp.ClientResponseError) -> int:
    return 1 if is_of_tunnel(error) else _ERROR
