"""Tell which calls stand in groups, and under which key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from .folding import place_of
from .values import text

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
    found = False
    if by != "name":
        for attempt in call.attempts:
            for inside in attempt.calls:
                found = True
                yield from units(inside, by)
    if not found:
        yield (text(values, "name") or "")[:_LONGEST], call


def key_of(values: Line, by: By) -> str | None:
    """Return the value of a key; None of a function, which has none but its name."""
    if by == "name":
        return text(values, "name")
    url = text(values, "request_url")
    if url is None:
        return None
    return _KEYS[by](values, url)[:_LONGEST]


def _host(values: Line, url: str) -> str:
    return place_of(url.partition("?")[0]).host


def _path(values: Line, url: str) -> str:
    return place_of(url.partition("?")[0]).path


def _method(values: Line, url: str) -> str:
    return text(values, "request_method") or ""


def _endpoint(values: Line, url: str) -> str:
    return text(values, "endpoint") or _host(values, url)


_KEYS: Final[dict[str, Callable[[Line, str], str]]] = {
    "host": _host,
    "path": _path,
    "method": _method,
    "endpoint": _endpoint,
}
