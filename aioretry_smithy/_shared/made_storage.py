"""Make a storage of the library ``limits`` of what users write."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from limits.aio.storage import MemoryStorage, Storage
from limits.errors import ConfigurationError
from limits.storage import storage_from_string

from .._errors import bad_argument
from .._meant import nearest

if TYPE_CHECKING:
    from collections.abc import Collection

    Options: TypeAlias = dict[str, float | str | bool]

_STORAGE: Final = (
    "an asynchronous storage, or the URI of one, such as async+redis://localhost"
)
_OPTION: Final = "an option of the storage"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*(?=://)", re.ASCII | re.IGNORECASE)
_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")

_OF_CLIENTS: Final = frozenset({"host"})
"""Options of clients of storages that look like a misspelt argument of ours."""


def storage_of(storage: object, options: Options, own: Collection[str]) -> Storage:
    """Return a storage, or make the one that a URI names.

    Args:
        storage: The storage, or the URI.
        options: What the storage that the URI names is made with.
        own: The names of the arguments beside them, one of which may be misspelt.

    Raises:
        ValueError: It is neither; or there is an option that the storage does not know,
            as far as can be told before it is asked.
    """
    if isinstance(storage, Storage):
        if options:
            names = ", ".join(options)
            raise bad_argument("storage_options", names, "none with a storage")
        return storage
    if isinstance(storage, str) and storage.startswith("async+"):
        made = _made(storage, options, own)
        if made is not None:
            return made
    # Not by way of the error, which shows the whole URI, or a part of it.
    raise bad_argument("storage", _shown(storage), _STORAGE)


def _made(uri: str, options: Options, own: Collection[str]) -> Storage | None:
    """Make the storage that a URI names; return None where it cannot be read."""
    unknown = None
    try:
        made = cast("Storage", storage_from_string(uri, **options))
        unknown = _unknown(made, options, own)
        if unknown is None:
            return made
    except TypeError as error:
        unknown = _unexpected(error, options)
        if unknown is None:
            raise
    except ValueError:
        return None
    except ConfigurationError as error:
        if uri.removeprefix("async+") not in str(error):
            raise
        return None
    # Without the value, which may be a secret.
    expected = f"{_OPTION}{nearest(unknown, own)}"
    raise bad_argument("storage_options", unknown, expected)


def _unknown(storage: Storage, options: Options, own: Collection[str]) -> str | None:
    """Return the name of an option that a storage ignores, or fails with later."""
    known = inspect.signature(type(storage)).parameters
    # Memory takes any, and does nothing with it.
    is_memory = isinstance(storage, MemoryStorage)
    for name in options:
        looks_like_ours = name not in _OF_CLIENTS and nearest(name, own) != ""
        if name not in known and (is_memory or looks_like_ours):
            return name
    return _unknown_to_client(storage, options)


def _unknown_to_client(storage: Storage, options: Options) -> str | None:
    """Return an option with which no connection can be made, where that is known."""
    client = getattr(getattr(storage, "bridge", None), "storage", None)
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        return None
    try:
        # It does not connect.
        pool.connection_class(**pool.connection_kwargs)
    except Exception as error:
        return _unexpected(error, options)
    return None


def _unexpected(error: Exception, options: Options) -> str | None:
    found = _UNEXPECTED.search(str(error))
    return found[1] if found is not None and found[1] in options else None


def _shown(storage: object) -> object:
    """Return what is no secret of a URI, or of what was given in place of one."""
    scheme = _SCHEME.match(storage) if isinstance(storage, str) else None
    if scheme is not None:
        return scheme[0]
    return None if storage is None else type(storage)
