"""Take values out of saved lines, and count them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Self, TypeVar

from .._log.saved_log import REFUSALS, seconds_of
from .._text.printable import encodable

if TYPE_CHECKING:
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
    """Return a text without lone surrogates, or None; an empty one is none."""
    value = values.get(key)
    return encodable(value) if value and isinstance(value, str) else None


def moment(values: Mapping[str, object]) -> float | None:
    """Return when a call started, in seconds since 1970, or None."""
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


def cause_type(values: Line) -> str | None:
    """Return the name of the class of the exception that a call failed with, if any."""
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
    """Say whether the caller gave a call up."""
    reason, cause = text(values, "stop_reason"), cause_type(values)
    return reason == "cancelled" or cause == "CancelledError"


def is_refused(values: Line) -> bool:
    """Say whether a circuit breaker, a limit or a group on this side refused it."""
    return status_of(values) is None and cause_type(values) in REFUSALS


def host_of(values: Line) -> str | None:
    """Return the host that a request went to; None of a function."""
    url = text(values, "sent_url") or text(values, "request_url")
    return None if url is None else place_of(url.partition("?")[0]).host


def where(values: Line) -> str:
    """Return the destination: an endpoint, else a host, else a function."""
    return (
        text(values, "endpoint")
        or host_of(values)
        or (text(values, "name") or "")[:_LONGEST_NAME]
    )


def whole(value: float) -> float:
    """Return a count as an int, unless sampled lines made it a fraction."""
    near = round(value)
    return near if abs(value - near) < 1e-6 else round(value, 6)


def ratio(part: float, all_of_it: float) -> float:
    """Return a ratio; 0 if the total is 0."""
    return part / all_of_it if all_of_it else 0.0


_WIDTH: Final = 0.01
_SCALE: Final = 1 / math.log1p(_WIDTH)
_MIDDLE: Final = 1 + _WIDTH / 2
_NOTHING: Final = -5000
"""The bucket of 0, far below that of any time that is measured."""


def bucket_of(value: float) -> int:
    """Return the bucket of a number >= 0: each is 1 % wide.

    >>> bucket_of(1.0), bucket_of(1.005), bucket_of(1.015)
    (0, 0, 1)
    """
    return math.floor(math.log(value) * _SCALE) if value > 1e-9 else _NOTHING


def value_of(bucket: int) -> float:
    """Return the middle of a bucket.

    >>> round(value_of(bucket_of(0.25)), 2)
    0.25
    """
    return 0.0 if bucket == _NOTHING else (1 + _WIDTH) ** bucket * _MIDDLE


KeyT = TypeVar("KeyT", bound=Hashable)


class Totals(dict[KeyT, float]):
    """Numbers that are added up by key."""

    def add(self, numbers: Iterable[tuple[KeyT, float]], weight: float = 1.0) -> Self:
        """Add numbers by key."""
        for key, number in numbers:
            self[key] = self.get(key, 0.0) + number * weight
        return self

    def __iadd__(self, other: Mapping[KeyT, float]) -> Self:
        """Add the numbers of *other*."""
        return self.add(other.items())


class Histogram:
    """Counts numbers >= 0 in buckets that are 1 % wide, each with a weight.

    >>> histogram = Histogram()
    >>> for seconds in (0.1, 0.2, 0.4):
    ...     histogram.add(bucket_of(seconds), seconds, 1.0)
    >>> round(histogram.quantile(0.5), 2), histogram.largest
    (0.2, 0.4)
    """

    __slots__ = ("buckets", "largest")

    buckets: Totals[int]
    """The weights in each bucket that is not empty."""

    largest: float | None

    def __init__(self) -> None:
        self.buckets = Totals()
        self.largest = None

    def add(self, bucket: int, value: float, weight: float) -> None:
        """Count a number, whose bucket is known."""
        self.buckets.add([(bucket, weight)])
        if self.largest is None or value > self.largest:
            self.largest = value

    def __iadd__(self, other: Histogram) -> Self:
        """Add the counts of *other*."""
        self.buckets += other.buckets
        if other.largest is not None:
            self.largest = max(other.largest, self.largest or 0.0)
        return self

    def bucket_at(self, quantile: float) -> int | None:
        """Return the bucket of a quantile; None if empty."""
        rank = quantile * sum(self.buckets.values()) * (1 - 1e-12)
        counted = 0.0
        found = None
        for found in sorted(self.buckets):
            counted += self.buckets[found]
            if counted >= rank:
                break
        return found

    def quantile(self, quantile: float) -> float | None:
        """Return a quantile of the numbers; None if empty.

        At most 1 % off; None where there is nothing.
        """
        bucket = self.bucket_at(quantile)
        if bucket is None or self.largest is None:
            return None
        return min(value_of(bucket), self.largest)


MOST_KEYS: Final = 2000
"""How many keys are kept while counting; more than are shown, for the order changes."""


@dataclass(slots=True)
class Sums:
    """Values that are added up, one for each field of the class; the first weighs."""

    @property
    def weight(self) -> float:
        """The weight by which entries are ranked."""
        weight: float = getattr(self, fields(self)[0].name)
        return weight

    def merge(self, other: Self) -> None:
        """Add the counts of *other*."""
        for field in fields(self):
            total = getattr(self, field.name)
            total += getattr(other, field.name)
            setattr(self, field.name, total)

    def counts(self) -> dict[str, float]:
        """Return the numbers by name, for an answer."""
        numbers = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: whole(each) for name, each in numbers if isinstance(each, float)}


CountT = TypeVar("CountT", bound=Sums)


def _rank(key: Hashable, count: Sums) -> tuple[float, str]:
    """Order counts: the largest first, equal ones (but for rounding) by their keys."""
    return -round(count.weight, 6), str(key)


class CountTable(Generic[KeyT, CountT]):
    """Counts by key; with too many keys, the rarest are merged into "others".

    Args:
        new: Makes a count of nothing.
        most: How many keys are kept.
    """

    def __init__(self, new: Callable[[], CountT], most: int = MOST_KEYS) -> None:
        self._new = new
        self._most = most
        self._counts: dict[KeyT, CountT] = {}
        self.others: CountT = new()
        self.merged = 0

    def at(self, key: KeyT) -> CountT:
        """Return the count of a key."""
        count = self._counts.get(key)
        if count is None:
            if len(self._counts) >= self._most:
                self._merge_rarest(self._most // 2)
            count = self._counts[key] = self._new()
        return count

    def largest(self, most: int) -> list[tuple[KeyT, CountT]]:
        """Return the keys with the most, and put all others together."""
        if len(self._counts) > most:
            self._merge_rarest(most)
        return self._ranked()

    def shown(self, most: int, others: KeyT) -> list[tuple[KeyT, CountT]]:
        """Return the keys with the most, and all others under a key of their own."""
        largest = self.largest(most)
        return [*largest, (others, self.others)] if self.merged else largest

    def _ranked(self) -> list[tuple[KeyT, CountT]]:
        return sorted(self._counts.items(), key=lambda pair: _rank(*pair))

    def _merge_rarest(self, kept: int) -> None:
        ranked = self._ranked()
        for key, count in ranked[kept:]:
            self.others.merge(count)
            self.merged += 1
            del self._counts[key]
