"""Tell hosts and paths of URLs, with what differs from call to call folded away."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

FOLDED: Final = "*"

_ID: Final = re.compile(
    r"""(?xi)
    [0-9]+ (?: [.,:_-] [0-9]+ )*  # a number, a date, several of them
    | [0-9]{4}-?[0-9]{2}-?[0-9]{2} [T_ ] [0-9:.Z+-]+  # a moment
    | [0-9a-f]{8} (?: -? [0-9a-f]{4} ){3} -? [0-9a-f]{12}  # a UUID
    | (?= [a-f]* [0-9] ) [0-9a-f]{8,}  # a hexadecimal number
    | [0-9a-f]{16,}
    | (?= [a-z_-]* [0-9] ) [0-9a-z_-]{24,}  # a key of another kind
    """
)
_EXTENSION: Final = re.compile(r"(?i)\.[a-z][a-z0-9]{0,4}")
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443", "ws": ":80", "wss": ":443"}
_END_OF_HOST: Final = re.compile(r"[/?#]")
_LONGEST: Final = 200
_LONGEST_WORD: Final = 15
"""Letters alone are an id from 16 on."""


class Place(NamedTuple):
    """Where a request goes to."""

    host: str
    """With the port, unless it is that of the scheme."""

    path: str
    """With ids folded."""


@lru_cache(maxsize=4096)
def place_of(url: str) -> Place:
    """Return the host and the folded path of a URL without its query.

    >>> place_of("https://api.example.com:443/orders/17/items")
    Place(host='api.example.com', path='/orders/*/items')
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return Place("", folded(url))
    end = _END_OF_HOST.search(rest)
    cut = len(rest) if end is None else end.start()
    return Place(_host(scheme, rest[:cut]), folded(rest[cut:]))


@lru_cache(maxsize=256)
def _host(scheme: str, authority: str) -> str:
    host = authority.rpartition("@")[2].lower()
    return host.removesuffix(_DEFAULT_PORTS.get(scheme, ":"))[:_LONGEST]


def folded(path: str) -> str:
    """Put a star in place of each part of a path that is an id or a date.

    >>> folded("/v2/users/0b9d2c1e-0f0e-4c0e-9a53-0d3c4a1f7a11/days/2026-11-23.json")
    '/v2/users/*/days/*.json'
    """
    path = path.partition("?")[0].partition("#")[0] or "/"
    return "/".join(map(_folded, path[:_LONGEST].split("/")))


def _folded(part: str) -> str:
    if part.isdecimal() and part.isascii():
        return FOLDED
    if not part or (part.isalpha() and len(part) <= _LONGEST_WORD):
        return part
    if _ID.fullmatch(part):
        return FOLDED
    name, dot, extension = part.rpartition(".")
    if _EXTENSION.fullmatch(dot + extension) and _ID.fullmatch(name):
        return f"{FOLDED}.{extension}"
    return part
