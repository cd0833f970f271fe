"""Choose the calls that a report is about, and the groups in which they stand."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from .answers import reason
from .fields import cause_type, outcome_of, place_of, status_of, text
from .tally import stop_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .answers import Line
    from .seen_call import SeenCall


By: TypeAlias = Literal["host", "method", "path", "endpoint", "name"]
"""The key that the calls of a group share."""

KEYS: Final[tuple[By, ...]] = get_args(By)
_LONGEST: Final = 200


def units(call: SeenCall, by: By) -> Iterator[tuple[str, SeenCall]]:
    """Yield the keys of a call, and the calls that count under them.

    A function has no host and no path: the requests that were made inside stand for it.
    Where there are none, it has its name.
    """
    values = call.values
    key = None if by == "name" else key_of(values, by)
    if key is not None:
        yield key, call
        return
    if by == "name" or not call.inside:
        yield (text(values, "name") or "")[:_LONGEST], call
        return
    for inside in call.inside:
        yield from units(inside, by)


def key_of(values: Line, by: str) -> str | None:
    """Return the value of a key; None of a function, which has none but its name."""
    if by == "name":
        return text(values, "name")
    url = text(values, "request_url")
    if url is None:
        return None
    place = place_of(url.partition("?")[0])
    keys = {
        "host": place.host,
        "method": text(values, "request_method") or "",
        "path": place.path,
        "endpoint": text(values, "endpoint") or place.host,
    }
    return keys[by][:_LONGEST]


_OF_THE_CALL: Final[dict[str, Callable[[SeenCall], object]]] = {
    "cause": lambda call: cause_type(call.values),
    "id": lambda call: text(call.values, "id"),
    "outcome": lambda call: "success" if call.is_success else outcome_of(call.values),
    "status": lambda call: status_of(call.values),
    "stop_reason": lambda call: stop_reason(call.values),
    "success": lambda call: "yes" if call.is_success else "no",
}

MATCHED: Final = (*KEYS, "url", *_OF_THE_CALL)
"""The keys that a pattern can match."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The calls that are wanted; all of them without arguments."""

    since: float | None = None
    """The first moment that is, in seconds since 1970."""

    until: float | None = None
    """The end of the selected period."""

    matches: tuple[tuple[str, str], ...] = ()
    """Keys with patterns, in which ``*``, ``?`` and ``[...]`` mean what they do in
    names of files; all must match."""

    def has_moment(self, started: float | None) -> bool:
        """Say whether a call began in the time; one without a moment is in none."""
        if self.since is not None and (started is None or started < self.since):
            return False
        return self.until is None or (started is not None and started <= self.until)

    def matches_all(self, call: SeenCall) -> bool:
        """Say whether a call matches all patterns."""
        return all(_matches(call, key, pattern) for key, pattern in self.matches)


def _matches(call: SeenCall, key: str, pattern: str) -> bool:
    return any(fnmatchcase(value, pattern) for value in _values(call, key))


def _values(call: SeenCall, key: str) -> Iterator[str]:
    """Yield what a pattern may match; of a function, also of the calls inside."""
    read = _OF_THE_CALL.get(key)
    if read is not None:
        value = read(call)
        yield "" if value is None else str(value)
        if key == "stop_reason":
            # As the tables say it, besides.
            yield reason("" if value is None else str(value))
        return
    yield from _places(call, key)
    for inside in call.inside:
        yield from _values(inside, key)


def _places(call: SeenCall, key: str) -> Iterator[str]:
    url = text(call.values, "request_url") or ""
    if key == "url":
        yield url
        return
    yield key_of(call.values, key) or ""
    if key == "path":
        # As it is, besides the one that is folded.
        rest = url.partition("?")[0].partition("://")[2]
        yield f"/{rest.partition('/')[2]}"
