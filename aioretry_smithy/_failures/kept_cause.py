"""Exceptions kept for the log of a call, without traceback and frames."""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import lru_cache
from types import CoroutineType, FrameType, MemberDescriptorType, TracebackType
from typing import Final, Self

import aiohttp

from .._errors import raised_from
from .hints import attribute_of

LOG_KEY: Final = "_aioretry_smithy_log"
"""The attribute of an exception or a response with the log of its call."""


class CallBound:
    """Base of the objects that belong to a call: context, requests and logs."""

    __slots__ = ()


class NeverPickled(CallBound):
    """Base of objects carried by exceptions and log records, never copied.

    These are pickled without them, and a copy has the same ones.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


_LEFT_OUT = (
    aiohttp.ClientResponse,
    asyncio.Future,
    CallBound,
    CoroutineType,
    FrameType,
    TracebackType,
)


class KeptCause:
    """Refers to an exception without keeping it or its frames alive.

    The exception of a call refers to the log, so the log must not refer to the
    exception. While other code keeps the exception, :meth:`get` returns it; later it
    returns a copy.
    """

    __slots__ = ("_copy", "_reference")

    def __init__(self, cause: BaseException) -> None:
        self._copy = without_frames(cause)
        self._reference: Callable[[], BaseException | None]
        try:
            self._reference = weakref.ref(cause)
        except TypeError:
            # Most of Python's own classes allow no weak reference.
            self._reference = type(None)

    @classmethod
    def of(cls, cause: BaseException | KeptCause, raised: object = None) -> KeptCause:
        """Refer to an exception, and drop its frames as :func:`drop_frames` does."""
        if isinstance(cause, KeptCause):
            return cause
        drop_frames(cause, raised)
        return cls(cause)

    def get(self) -> BaseException:
        """Return the exception, or a copy of the same class and text."""
        cause = self._reference()
        return self._copy if cause is None else cause


def drop_frames(cause: BaseException | None, raised: object = None) -> None:
    """Remove the tracebacks of an exception, its causes and contexts.

    An exception that the calling code is handling may be among these, or the one that
    is to be *raised* next; these stay as they are.
    """
    handled = sys.exception()
    spared = {id(link) for each in (handled, raised) for link in raised_from(each)}
    for link in raised_from(cause):
        if isinstance(link, BaseException) and id(link) not in spared:
            # A user's exception may refuse that its attributes are set.
            BaseException.with_traceback(link, None)


def without_frames(
    error: BaseException, inside: Collection[int] = frozenset()
) -> BaseException:
    """Return a copy with the class and the text of an exception, and no traceback.

    Its attributes are copied too, except objects of the call: responses, requests,
    contexts, logs, tasks, frames. *inside* are the ids of exceptions that contain it.
    """
    kind = type(error)
    inside = {*inside, id(error)}
    # A user's class may not allow such a copy.
    with suppress(Exception):
        copy = kind.__new__(kind, *(_kept(each, inside) for each in error.args))
        for name, value in vars(error).items():
            if name != LOG_KEY:
                vars(copy)[name] = _kept(value, inside)
        _copy_members(error, copy)
        cause = error.__cause__
        if cause is not None and id(cause) not in inside:
            copy.__cause__ = without_frames(cause, inside)
        if str(copy) == str(error):
            return copy
    return _stand_in(error)


def _kept(value: object, inside: Collection[int]) -> object:
    if isinstance(value, BaseException):
        return None if id(value) in inside else without_frames(value, inside)
    if isinstance(value, _LEFT_OUT):
        return None
    if type(value) is tuple:
        return tuple(_kept(each, inside) for each in value)
    if type(value) is list:
        return [_kept(each, inside) for each in value]
    if type(value) is dict:
        return {key: _kept(each, inside) for key, each in value.items()}
    return value


def _copy_members(error: BaseException, copy: BaseException) -> None:
    """Copy attributes stored outside of ``__dict__``, for example ``errno``."""
    kind: type = type(error)
    for name in _members_of(kind):
        value = attribute_of(error, name)
        if value is not None:
            # An attribute may be read-only.
            with suppress(AttributeError, TypeError):
                setattr(copy, name, value)


@lru_cache(maxsize=256)
def _members_of(kind: type) -> tuple[str, ...]:
    """Return the names of attributes outside of ``__dict__``; found once a class."""
    return tuple(
        name
        for each in kind.__mro__
        for name, member in vars(each).items()
        if isinstance(member, MemberDescriptorType)
    )


def _stand_in(error: BaseException) -> BaseException:
    """Make an exception with the same text, of a class with the same name."""
    kind = type(error)
    try:
        text = str(error)
    except Exception:
        text = ""
    base = next(
        base
        for base in kind.__mro__
        if base.__module__ == "builtins" and not issubclass(base, BaseExceptionGroup)
    )
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    members = {**names, "__str__": lambda self: text}
    stand_in: BaseException = type(kind.__name__, (base,), members)()
    return stand_in
