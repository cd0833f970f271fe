"""Read the values of a line: whatever is not as it should be is missing."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from .._log.saved_log import seconds_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .answers import Line


_MOST: Final = 1e9
"""An upper bound of plausible times and counts."""


def number(values: Mapping[str, object], key: str) -> float | None:
    """Return a number >= 0 and finite, or None."""
    value = values.get(key)
    if type(value) is float or type(value) is int:
        return value if 0 <= value < _MOST else None
    return None


def text(values: Mapping[str, object], key: str) -> str | None:
    """Return a text, or None; an empty one is none."""
    value = values.get(key)
    return (value or None) if isinstance(value, str) else None


def moment(values: Mapping[str, object]) -> float | None:
    """Return when it started, in seconds since 1970, or None."""
    return seconds_of(values.get("request_started_at"))


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
_LONGEST_PATH: Final = 200
_LONGEST_WORD: Final = 15
"""Letters alone are an id from 16 on."""


class UrlParts(NamedTuple):
    """Where a request goes to."""

    host: str
    """The host, with the port unless it is the default port."""

    path: str
    """With ids folded."""


@lru_cache(maxsize=4096)
def place_of(url: str) -> UrlParts:
    """Return the host and the folded path of a URL without its query.

    >>> place_of("https://api.example.com:443/orders/17/items")
    UrlParts(host='api.example.com', path='/orders/*/items')
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return UrlParts("", folded(url))
    end = _END_OF_HOST.search(rest)
    cut = len(rest) if end is None else end.start()
    return UrlParts(_host(scheme, rest[:cut]), folded(rest[cut:]))


@lru_cache(maxsize=256)
def _host(scheme: str, authority: str) -> str:
    host = authority.rpartition("@")[2].lower()
    return host.removesuffix(_DEFAULT_PORTS.get(scheme, ":"))[:_LONGEST_PATH]


def folded(path: str) -> str:
    """Put a star in place of each part of a path that is an id or a date.

    >>> folded("/v2/users/0b9d2c1e-0f0e-4c0e-9a53-0d3c4a1f7a11/days/2026-11-23.json")
    '/v2/users/*/days/*.json'
    """
    path = path.partition("?")[0].partition("#")[0] or "/"
    return "/".join(map(_folded, path[:_LONGEST_PATH].split("/")))


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


_LONGEST_NAME: Final = 80

_REFUSALS: Final = frozenset(
    {
        "ConcurrencyLimitError",
        "EmptyEndpointGroupError",
        "EndpointGroupError",
        "EndpointSelectionTimeoutError",
        "FailFastError",
        "RateLimitError",
    }
)
"""The exceptions of decorators that refuse a request on this side."""


def cause_type(values: Line) -> str | None:
    """Return the name of the class of the exception, if it failed with one."""
    name = text(values, "response_cause_type")
    if name is None:
        # Older lines have the text alone.
        cause = text(values, "response_cause")
        name = None if cause is None else cause.partition(":")[0]
    return None if name is None else name[:_LONGEST_NAME]


def status_of(values: Line) -> int | None:
    """Return the status, or None without a response."""
    status = number(values, "response_status")
    return None if status is None else int(status)


def is_success(values: Line, *, was_retried: bool = False) -> bool:
    """Say whether a call succeeded, even if an older line lacks the key."""
    known = values.get("is_success")
    if isinstance(known, bool):
        return known
    status = status_of(values)
    return (
        not was_retried
        and cause_type(values) is None
        and (status is None or status < 400)
        and text(values, "stop_reason") is None
    )


def outcome_of(values: Line) -> str:
    """Name the outcome of what was no success.

    >>> outcome_of({"response_status": 503})
    '503'
    >>> outcome_of({"response_status": 200})
    '200, retried'
    """
    status, cause = status_of(values), cause_type(values)
    if status is None:
        return cause or "no response"
    if status >= 400:
        return str(status)
    # Its content said that it failed, or it would be a success.
    return f"{status}, {cause or 'retried'}"


def is_cancelled(values: Line) -> bool:
    """Say whether the caller gave it up."""
    reason, cause = text(values, "stop_reason"), cause_type(values)
    return reason == "cancelled" or cause == "CancelledError"


def is_refused(values: Line) -> bool:
    """Say whether a circuit breaker, a limit or a group on this side refused it."""
    return status_of(values) is None and cause_type(values) in _REFUSALS


def host_of(values: Line) -> str | None:
    """Return the host that it went to; None of a function."""
    url = text(values, "sent_url") or text(values, "request_url")
    return None if url is None else place_of(url.partition("?")[0]).host


def where(values: Line) -> str:
    """Return the destination: an endpoint, else a host, else a function."""
    return (
        text(values, "endpoint")
        or host_of(values)
        or (text(values, "name") or "")[:_LONGEST_NAME]
    )
