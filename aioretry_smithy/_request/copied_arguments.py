"""Copy the arguments of a request, to protect them from later changes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.cookies import BaseCookie
from typing import Any, Final, TypeAlias

from aiohttp import FormData
from multidict import CIMultiDict, CIMultiDictProxy, MultiDict, MultiDictProxy

MUTABLE_ARGUMENTS = frozenset(
    {"cookies", "data", "headers", "params", "proxy_headers", "skip_auto_headers"}
)
"""The names of the arguments that the caller may change after the call began."""

_MULTIDICTS = {CIMultiDict, CIMultiDictProxy, MultiDict, MultiDictProxy}
_NESTED = {bytearray, dict, list, memoryview, set, tuple, *_MULTIDICTS}

# A call with nothing else takes the short lane.
_USUAL = frozenset(
    "allow_redirects auth cookies data headers json max_redirects params proxy ssl"
    " timeout".split()
)
_READ_ONLY = {bytes, str, type(None)}

Containers: TypeAlias = tuple[Any, Any, Any]
"""Headers, params and cookies, None for what is not there."""

UsualCopies: TypeAlias = tuple[Containers | None, bool]
"""The copies of the containers, and whether there is a body; ``(None, False)`` for a
request with an unusual argument."""

NO_CONTAINERS: Final[Containers] = None, None, None

PLAIN: Final[UsualCopies] = NO_CONTAINERS, False
"""What a request has that has neither containers nor a body."""

_UNUSUAL: Final[UsualCopies] = None, False


def copy_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with equal copies of containers and buffers.

    Without anything to copy, that is the same dictionary. An iterator becomes a list in
    both, to be read more than once. JSON is not copied: the next attempts send the text
    of the first one. Nor are files and read-only objects.
    """
    copies: dict[str, Any] | None = None
    for name, value in arguments.items():
        if value is None or name not in MUTABLE_ARGUMENTS:
            continue
        if type(value) in _NESTED:
            copied = _copy_of(value)
        elif name == "data":
            copied = _body_copy(value)
        else:
            # aiohttp refuses an iterator of params.
            if isinstance(value, Iterator) and name != "params":
                value = arguments[name] = list(value)  # noqa: PLW2901
            copied = _copy_or_same(value)
        if copied is not value:
            copies = copies or arguments.copy()
            copies[name] = copied
    return copies or arguments


def is_usual(arguments: dict[str, Any]) -> bool:
    """Say whether a request has no other arguments than most have."""
    data = arguments.get("data")
    is_read_only = data is None or type(data) in _READ_ONLY
    return is_read_only and _USUAL.issuperset(arguments)


def usual_copies(arguments: dict[str, Any]) -> UsualCopies:
    """Return copies of the containers of a usual request, and whether it has a body.

    There are none where the caller may change anything else later.
    """
    # One by one: a loop, or a test of all the names, takes longer than all the rest.
    unseen, data, json = len(arguments), None, None
    headers = params = cookies = None
    try:
        if "data" in arguments:
            unseen -= 1
            data = arguments["data"]
            if data is not None and type(data) not in _READ_ONLY:
                return _UNUSUAL
        if "json" in arguments:
            unseen -= 1
            json = arguments["json"]
        if "headers" in arguments:
            unseen -= 1
            headers = arguments["headers"]
            # Their values are strings, or aiohttp complains.
            headers = headers.copy() if type(headers) is dict else _usual_copy(headers)
        if "params" in arguments:
            unseen -= 1
            params = arguments["params"]
            params = (
                _copy_of_dict(params) if type(params) is dict else _usual_copy(params)
            )
        if unseen:
            cookies = _usual_copy(arguments.get("cookies"))
            if not _USUAL.issuperset(arguments):
                return _UNUSUAL
    except _UnusualError:
        return _UNUSUAL
    return (headers, params, cookies), data is not None or json is not None


def with_copies(arguments: dict[str, Any], copies: Containers) -> dict[str, Any]:
    """Return the arguments of a usual request with copies of its containers."""
    if copies is NO_CONTAINERS:
        return arguments
    headers, params, cookies = copies
    copied = arguments.copy()
    if headers is not None:
        copied["headers"] = headers
    if params is not None:
        copied["params"] = params
    if cookies is not None:
        copied["cookies"] = cookies
    return copied


class _UnusualError(Exception):
    pass


def _usual_copy(value: Any) -> Any:
    if type(value) in _NESTED:
        return _copy_of(value)
    if value is None or type(value) is str:
        return value
    raise _UnusualError


def _body_copy(value: Any) -> Any:
    if isinstance(value, FormData) and not value.is_multipart:
        form = copy.copy(value)
        form._fields = value._fields.copy()
        return form
    return copy.copy(value) if isinstance(value, dict | list) else value


def _copy_or_same(value: Any) -> Any:
    if type(value) in _NESTED:
        return _copy_of(value)
    if isinstance(value, Mapping | list | set):
        # If it cannot be copied, aiohttp gets it as it is.
        with suppress(Exception):
            deep = isinstance(value, BaseCookie)
            return copy.deepcopy(value) if deep else copy.copy(value)
    return value


def _copy_of_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    for item in value.values():
        if type(item) in _NESTED:
            break
    else:
        return value.copy()
    return {
        name: _copy_of(item) if type(item) in _NESTED else item
        for name, item in value.items()
    }


def _copy_of(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return _copy_of_dict(value)
    if kind is list or kind is tuple:
        return kind(_copy_of(item) if type(item) in _NESTED else item for item in value)
    if kind is bytearray:
        return bytearray(value)
    if kind is memoryview:
        return value if value.readonly else memoryview(value.tobytes())
    return value.copy()
