"""Take the headers of users' own responses and exceptions as those of aiohttp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from multidict import CIMultiDict, CIMultiDictProxy

if TYPE_CHECKING:
    from multidict import MultiMapping

NO_HEADERS: Final[CIMultiDictProxy[str]] = CIMultiDictProxy(CIMultiDict())
"""The headers of a response that has none."""


def as_headers(headers: object) -> MultiMapping[str]:
    """Return headers of any class as those of aiohttp; none of what has no names.

    >>> as_headers({"retry-after": 1})["Retry-After"]
    '1'
    """
    if isinstance(headers, CIMultiDictProxy | CIMultiDict):
        return headers
    if not isinstance(headers, Mapping):
        return NO_HEADERS
    return CIMultiDict([(str(name), str(value)) for name, value in headers.items()])
