"""Read the facts of a response, which a user's own class need not have.

That of a test kit often has a status and a body, and knows of no connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from yarl import URL

from .._failures.frames import as_headers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from multidict import MultiMapping

    from .kinds import Result


def connection_of(response: Result) -> Result:
    """Return the connection that the body comes over; None where all of it is here."""
    return getattr(response, "connection", None)


def content_of(response: Result) -> object:
    """Return the stream of the body; None where there is none."""
    return getattr(response, "content", None)


def arrived_of(response: Result) -> int:
    """Return how many bytes of the body have come into its stream."""
    content = getattr(response, "content", None)
    arrived = getattr(content, "total_bytes", 0)
    return arrived if type(arrived) is int else 0


def headers_of(response: Result) -> MultiMapping[str]:
    """Return the headers; the case of their names does not count."""
    return as_headers(getattr(response, "headers", None))


def sent_headers_of(response: Result) -> Mapping[str, str] | None:
    """Return the headers that were sent first; None where nobody knows."""
    history = history_of(response)
    request = getattr(history[0] if history else response, "request_info", None)
    headers: Mapping[str, str] | None = getattr(request, "headers", None)
    return headers


def history_of(response: Result) -> Sequence[Result]:
    """Return the answers of the hops before, the first one first."""
    return getattr(response, "history", None) or ()


def url_of(response: Result) -> URL | None:
    """Return the URL that has answered; None where nobody knows."""
    url = getattr(response, "url", None)
    return URL(url) if isinstance(url, str | URL) else None
