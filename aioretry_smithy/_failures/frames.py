"""Find in a failure whether its request was sent, and the answer of a server.

Only failures are looked at: tracing every request would cost all of them.

A middleware, a decorator or a function that is retried may raise in place of returning
a response. Such an exception is judged as the response would have been.
"""

from __future__ import annotations

from collections.abc import Mapping
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import aiohttp
from aiohttp.http import HttpProcessingError
from multidict import CIMultiDict, CIMultiDictProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from multidict import MultiMapping


NO_HEADERS: Final[CIMultiDictProxy[str]] = CIMultiDictProxy(CIMultiDict())
"""The headers of a response that has none."""


def as_headers(headers: object) -> MultiMapping[str]:
    """Return headers of any class as those of aiohttp; none of what has no names.

    >>> as_headers({"retry-after": 1})["Retry-After"]
    '1'
    """
    if isinstance(headers, CIMultiDictProxy | CIMultiDict):
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
