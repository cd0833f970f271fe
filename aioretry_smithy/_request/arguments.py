"""Copy the arguments of a request, and refuse what is no header."""

from __future__ import annotations

import copy
import re
from collections import UserString
from collections.abc import Iterator, Mapping, Sequence
from http.cookies import BaseCookie, Morsel
from typing import Any, Final, TypeAlias, TypeGuard

from aiohttp import FormData, payload
from multidict import CIMultiDict, CIMultiDictProxy, MultiDict, MultiDictProxy

from .._errors import bad_argument

TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header, or of a method."""

# ASCII without control characters, and without a blank at either end.
_VALUE: Final = re.compile(r"[!-~]+(?:[ \t]+[!-~]+)*")


def is_header_name(value: object) -> TypeGuard[str]:
    """Say whether a value is a valid name of a header.

    >>> is_header_name("X-Api-Key"), is_header_name("X Api Key")
    (True, False)
    """
    return isinstance(value, str) and TOKEN.fullmatch(value) is not None


def check_header_name(header: object) -> None:
    """Refuse an argument ``header`` that is no name of a header."""
    if not is_header_name(header):
        raise bad_argument("header", header, "a header name")


def is_header_value(value: object) -> TypeGuard[str]:
    r"""Say whether a text is valid as a header value, unchanged.

    >>> is_header_value("Bearer abc"), is_header_value("abc\n"), is_header_value("")
    (True, False, False)
    """
    return isinstance(value, str) and _VALUE.fullmatch(value) is not None


_MULTIDICTS = {CIMultiDict, CIMultiDictProxy, MultiDict, MultiDictProxy}
USUAL_CONTAINERS = frozenset({dict, list, set, tuple, *_MULTIDICTS})
"""The classes of the containers that most requests have."""

# What most containers hold, and nothing can change.
_FIXED = frozenset({bool, bytes, float, int, str, type(None)})
_TEXT = (str, bytes, UserString)


def copy_of(value: Any) -> Any:
    """Return an equal copy of a container or a buffer; other values are returned as is.

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
    """Return immutable bytes, copied only from a mutable buffer."""
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


Arguments: TypeAlias = dict[str, Any]
"""The arguments of a request, by their names in ``session.request()``."""

MUTABLE_ARGUMENTS = frozenset(
    {"cookies", "data", "headers", "params", "proxy_headers", "skip_auto_headers"}
)
"""The names of the arguments that the caller may change after the call began."""

_FORMS = (dict, list, tuple, MultiDict, MultiDictProxy)
_READ_BY_KIND = {"data", "params"}
# They can be read more than once; other iterables perhaps not.
_LASTING = (Mapping, Sequence, set, frozenset)


def copy_arguments(arguments: Arguments) -> Arguments:
    """Return the arguments with equal copies of containers and buffers.

    Without anything to copy, that is the same dictionary. An iterable that is no
    container becomes a list in both, to be read more than once. JSON is not copied: the
    next attempts send the text of the first one. Nor are files and read-only objects.
    """
    copies: Arguments | None = None
    for name, value in arguments.items():
        if value is None or name not in MUTABLE_ARGUMENTS:
            continue
        if type(value) is dict and _FIXED.issuperset(map(type, value.values())):
            copied = value.copy()
        else:
            if not (type(value) in USUAL_CONTAINERS or name in _READ_BY_KIND):
                value = arguments[name] = _lasting(value)  # noqa: PLW2901
            copied = _copy(name, value)
        if copied is not value:
            copies = copies or arguments.copy()
            copies[name] = copied
    return copies or arguments


def _copy(name: str, value: Any) -> Any:
    is_body = name == "data" and type(value) not in USUAL_CONTAINERS
    try:
        return _body_copy(value) if is_body else copy_of(value)
    except Exception:
        return value  # aiohttp gets it as it is, and may complain


def is_unchanged(given: Arguments, copies: Arguments) -> bool:
    """Say whether what the caller gave surely still equals its copies."""
    # All of a long view would be compared byte by byte, to send the copy anyway.
    if isinstance(given.get("data"), memoryview):
        return False
    try:
        return given == copies
    except Exception:
        # A container of the user's own class, such as a vector, need not compare.
        return False


def _lasting(value: Any) -> Any:
    """Return what can be read more than once: a list of any other iterable."""
    if isinstance(value, _LASTING):
        return value
    if isinstance(value, Iterator):
        return list(value)
    try:
        return list(value)
    except Exception:
        # aiohttp meets the error again, within the call.
        return value


def _body_copy(value: Any) -> Any:
    if isinstance(value, bytearray | memoryview):
        return copy_of_buffer(value)
    if isinstance(value, FormData):
        return value if value.is_multipart else _copy_of_form(value)
    if not isinstance(value, _FORMS):
        return value
    if has_payload(value):
        return copy.copy(value)
    return copy_of(value)


def _copy_of_form(form: FormData) -> FormData:
    copied = copy.copy(form)
    copied._fields = [
        (options, headers, copy_of(value)) for options, headers, value in form._fields
    ]
    return copied


def has_payload(value: object) -> bool:
    """Say whether aiohttp knows a payload for the class of an object."""
    try:
        payload.PAYLOAD_REGISTRY.get(value)
    except payload.LookupError:
        return False
    return True
