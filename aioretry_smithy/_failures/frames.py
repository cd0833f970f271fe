"""Find in the frames of a failure what it tells, and keep exceptions without them.

Only failures are looked at: tracing every request would cost all of them.

A middleware, a decorator or a function that is retried may raise in place of returning
a response. Such an exception is judged as the response would have been.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from traceback import walk_tb
from types import CoroutineType, FrameType, MemberDescriptorType, TracebackType
from typing import Any, Final, NamedTuple, Self, TypeAlias

import aiohttp
from aiohttp.http import HttpProcessingError
from multidict import CIMultiDict, CIMultiDictProxy, MultiMapping

from .._errors import raised_from

NO_HEADERS: Final[CIMultiDictProxy[str]] = CIMultiDictProxy(CIMultiDict())
"""The headers of a response that has none."""


_CLASSES: Final = (CIMultiDictProxy, CIMultiDict)


def as_headers(headers: object) -> MultiMapping[str]:
    """Return headers of any class as those of aiohttp; none of what has no names.

    >>> as_headers({"retry-after": 1})["Retry-After"]
    '1'
    """
    if isinstance(headers, _CLASSES):
        return headers
    if not isinstance(headers, Mapping):
        return NO_HEADERS
    return CIMultiDict([(str(name), str(value)) for name, value in headers.items()])


Place: TypeAlias = tuple[str, str]
"""The module and the function of a frame."""

Frames: TypeAlias = list[tuple[Place, "FrameType"]]

REQUEST: Final = ("aiohttp.client", "_request")
SENDING: Final = ("aiohttp.client", "_connect_and_send_request")

# From our own error to the cancellation by which aiohttp's timer ends a wait.
_LINKS = 4
_REPEATED = {"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"}
_HANDSHAKE = ("aiohttp.client", "_ws_connect")
_OF_RESPONSES = {"aiohttp.client_reqrep", "aiohttp.streams"}


def frames_of(cause: BaseException) -> Frames:
    """Return the frames that an exception came through, the outermost first."""
    return [
        ((frame.f_globals.get("__name__", ""), frame.f_code.co_name), frame)
        for frame, _line in walk_tb(cause.__traceback__)
    ]


class Trace:
    """The frames that a failure came through, and its causes, walked once.

    It must not outlive the look at the failure: frames have bodies and responses.
    """

    __slots__ = ("frames", "links")

    def __init__(self, cause: BaseException) -> None:
        self.links: list[Frames] = []
        link: BaseException | None = cause
        while link is not None and len(self.links) < _LINKS:
            self.links.append(frames_of(link))
            # Not the context: that may be the failure of an earlier call.
            link = link.__cause__
        self.frames = [each for link in self.links for each in link]

    def has(self, place: Place) -> bool:
        """Say whether the failure came through a function."""
        return any(each == place for each, _ in self.frames)

    def went_out(self) -> bool:
        """Say whether a request had left for a server when it failed."""
        frames = self.frames
        # A middleware may fail after its request was answered. The outermost frame is
        # that of this call; those inside it are of calls that the middleware made.
        own = next((frame for place, frame in frames if place == REQUEST), None)
        if own is not None and was_answered(own.f_locals.get("req")):
            return True
        return any(
            (place == REQUEST and _is_later_send(frame.f_locals))
            or (place == SENDING and was_answered(frame.f_locals.get("req")))
            for place, frame in frames
        )


def is_unreadable_answer(error: aiohttp.ClientResponseError) -> bool:
    """Say whether the status is none: aiohttp made it up for what it cannot parse."""
    return isinstance(error.__cause__, HttpProcessingError)


def was_answered(request: object) -> bool:
    """Say whether a request of aiohttp's has a response.

    A middleware that sends again uses the same request, which keeps what came of it.
    """
    return getattr(request, "response", None) is not None


def _is_later_send(variables: Mapping[str, object]) -> bool:
    # The answered hops; and a first send that aiohttp repeated behind our back.
    if variables.get("history"):
        return True
    may_repeat = getattr(variables.get("self"), "_retry_connection", False)
    is_first = variables.get("retry_persistent_connection", True)
    return may_repeat and variables.get("method") in _REPEATED and not is_first


def sources_of(cause: BaseException) -> Iterator[tuple[Any, bool]]:
    """Yield the responses and the timers of bodies that raised an exception.

    Each comes with a bool: whether the body had failed with this very exception.
    """
    callers: list[FrameType] = []
    for place, frame in frames_of(cause):
        if place == _HANDSHAKE:
            yield frame.f_locals.get("resp"), False
        elif place[0] in _OF_RESPONSES:
            source = frame.f_locals.get("self")
            if isinstance(source, aiohttp.StreamReader):
                # The one stream of all empty bodies has no timer.
                timer = getattr(source, "_timer", None)
                yield timer, source.exception() is cause
                yield _response_of(source, callers), False
            else:
                yield source, False
        callers.append(frame)


def _response_of(
    content: aiohttp.StreamReader, callers: list[FrameType]
) -> aiohttp.ClientResponse | None:
    """Find the response of a stream with the code that read it, the nearest first.

    A stream does not know its response, and a link would cost each call that succeeds.
    """
    for frame in _nearest_first(callers):
        variables = frame.f_locals
        attributes = getattr(variables.get("self"), "__dict__", {})
        found = {
            id(value): value
            for value in (*variables.values(), *attributes.values())
            if issubclass(type(value), aiohttp.ClientResponse)
            and value.content is content
        }
        if found:
            # All empty bodies share one stream.
            return next(iter(found.values())) if len(found) == 1 else None
    return None


def _nearest_first(callers: list[FrameType]) -> Iterator[FrameType]:
    """Yield frames, innermost first, followed by the frames of their callers."""
    yield from reversed(callers)
    frame = callers[0].f_back if callers else None
    while frame is not None:
        yield frame
        frame = frame.f_back


_ERROR: Final = 400

ABOVE_ANSWERS: Final = frozenset(aiohttp.ClientResponseError.__mro__[1:])
"""The classes above that of what is raised for an answer: they tell no status."""


class RaisedAnswer(NamedTuple):
    """The status and the headers of an answer that was raised."""

    status: int
    headers: MultiMapping[str]

    is_of_tunnel: bool
    """Whether the answer is a proxy's refusal of a tunnel."""

    @classmethod
    def of(cls, error: BaseException) -> RaisedAnswer | None:
        """Return the answer of a server or of a proxy in an exception; None without.

        That is a status of 400 or more: an endless redirect, a body of the wrong type
        and an answer that is not HTTP are failures. Of a proxy that opens no tunnel it
        is any.
        """
        if not isinstance(error, aiohttp.ClientResponseError):
            return None
        status = getattr(error, "status", None)
        is_of_tunnel = isinstance(error, aiohttp.ClientHttpProxyError)
        lowest = 1 if is_of_tunnel else _ERROR
        if not isinstance(status, int) or status < lowest:
            return None
        if is_unreadable_answer(error):
            return None
        headers = as_headers(getattr(error, "headers", None))
        return cls(int(status), headers, is_of_tunnel)


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
        value = getattr(error, name, None)
        if value is not None:
            # An attribute may be read-only.
            with suppress(AttributeError, TypeError):
                setattr(copy, name, value)


@lru_cache(maxsize=256)
def _members_of(kind: type) -> tuple[str, ...]:
    """Return the names of such attributes; looked up once for each class."""
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
