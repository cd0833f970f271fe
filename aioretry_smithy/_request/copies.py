"""Copy containers and buffers, with all containers and buffers inside."""

from __future__ import annotations

import copy
from collections import UserString
from collections.abc import Mapping, Sequence
from http.cookies import BaseCookie, Morsel
from typing import Any

from multidict import CIMultiDict, CIMultiDictProxy, MultiDict, MultiDictProxy

_MULTIDICTS = {CIMultiDict, CIMultiDictProxy, MultiDict, MultiDictProxy}
USUAL_CONTAINERS = frozenset({dict, list, set, tuple, *_MULTIDICTS})
"""The classes of the containers that most requests have."""

# What most containers hold, and nothing can change.
_FIXED = frozenset({bool, bytes, float, int, str, type(None)})
_TEXT = (str, bytes, UserString)


def has_fixed_values(value: dict[Any, Any]) -> bool:
    """Say whether a dictionary surely holds nothing that can change."""
    for item in value.values():  # noqa: SIM110
        if type(item) not in _FIXED:
            return False
    return True


def copy_of(value: Any) -> Any:
    """Return an equal copy of a container or a buffer, anything else as it is.

    A container of a user's own class becomes one of Python's or multidict's, which
    tells aiohttp the same.
    """
    kind = type(value)
    if kind in _FIXED:
        return value
    if kind is dict:
        return {name: copy_of(item) for name, item in value.items()}
    if kind is list or kind is tuple:
        return kind([item if type(item) in _FIXED else copy_of(item) for item in value])
    if kind in _MULTIDICTS:
        return _copy_of_multidict(value)
    return _copy_of_rare(value)


def copy_of_buffer(value: bytes | bytearray | memoryview) -> bytes | memoryview:
    """Return bytes that nothing can change; without a copy where they are that."""
    if isinstance(value, bytes):
        return value
    # A read-only view says nothing about the buffer that it shows.
    if isinstance(value, memoryview) and memoryview(value.obj).readonly:
        return value
    return bytes(value)


def _copy_of_multidict(value: Any) -> Any:
    copied = value.copy()
    for item in copied.values():
        if type(item) not in _FIXED:
            return type(copied)([(name, copy_of(item)) for name, item in value.items()])
    return copied


def _copy_of_rare(value: Any) -> Any:
    if isinstance(value, bytearray | memoryview):
        return copy_of_buffer(value)
    if isinstance(value, BaseCookie | Morsel):
        return copy.deepcopy(value)
    if isinstance(value, CIMultiDict | CIMultiDictProxy):
        return _copy_of_multidict(CIMultiDict(value))
    if isinstance(value, MultiDict | MultiDictProxy):
        return _copy_of_multidict(MultiDict(value))
    if isinstance(value, Mapping):
        items = list(value.items())
        copied = dict(items)
        # There are other classes with equal keys than multidict's.
        rare = MultiDict(items) if len(copied) < len(items) else copied
        return copy_of(rare)
    return _copy_of_items(value)


def _copy_of_items(value: Any) -> Any:
    if isinstance(value, set):
        return value.copy()
    if isinstance(value, Sequence) and not isinstance(value, _TEXT):
        items = [copy_of(item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value
