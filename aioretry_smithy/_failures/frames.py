"""Find the origin of a failure in the frames of a traceback.

Only failures are looked at: tracing every request would cost all of them.
"""

from __future__ import annotations

import asyncio
from itertools import dropwhile
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import aiohttp

from .._errors import raised_from
from .failure import peel
from .hints import RetryInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

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

    def connecting(self) -> Frames:
        """Return the frames of a connection that was not made in time or at all.

        Empty if the request of this call had left, or if something else failed. A
        timer of aiohttp's ends the wait by a cancellation, which is the cause.
        """
        places = [place for place, _ in self.links[0]]
        if REQUEST not in places or self.went_out():
            return []
        own = self.links[0][places.index(REQUEST)][1]
        for link in self.links[:2]:
            inside = [*dropwhile(lambda each: each[1] is not own, link)][1:]
            places = [place for place, _ in inside]
            if _CONNECTING in places and REQUEST not in places:
                begun = inside[places.index(_CONNECTING) :]
                return [] if _has_hook(begun) else begun
        return []


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


_BUGS: Final = frozenset({AssertionError, AttributeError, RuntimeError})
"""The classes, and none below them, of what goes wrong inside a library."""

_LIBRARIES: Final = frozenset(
    {
        "aiodns",
        "aiohappyeyeballs",
        "aiohttp",
        "asyncio",
        "concurrent",
        "pycares",
        "selectors",
        "socket",
        "ssl",
        "threading",
        "uvloop",
        "winloop",
    }
)
"""Packages between a request of aiohttp and the socket."""

_LOOPS: Final = frozenset({"asyncio", "uvloop", "winloop"})
_SENDERS: Final = frozenset({"aiohttp.base_protocol", "aiohttp.http_writer"})
_CONNECTING: Final = ("aiohttp.connector", "connect")
_HOOKS: Final = "aiohttp.tracing"


def broken_connection_is_made(cause: BaseException) -> bool | None:
    """Say whether there was a connection that a bug of a library broke.

    False if it broke while connecting; None where no such bug did. Afterwards only what
    event loops raise is one: aiohttp itself meets what the caller has given it.
    """
    for link in (cause, cause.__cause__):
        if link is None or type(link) not in _BUGS:
            continue
        frames = frames_of(link)
        module = frames[-1][0][0].partition(".")[0] if frames else ""
        if module not in _LIBRARIES or _has_hook(frames):
            continue
        connector = next((each for place, each in frames if place == _CONNECTING), None)
        if connector is not None:
            return False if _is_of_this_loop(connector) else None
        if module in _LOOPS and any(place[0] in _SENDERS for place, _ in frames):
            return True
    return None


def is_of_user_code(cause: BaseException, inside: Frames) -> bool:
    """Say whether a hook or a middleware has failed, and nothing that it waited for.

    What speaks of a server is no such failure: exceptions of aiohttp, of the operating
    system, timeouts, those that say so by Smithy's retry information, and what a
    middleware raises in place of one of them.

    Args:
        cause: The exception.
        inside: The frames that it came through below the request of aiohttp.
    """
    if _speaks_of_server(cause):
        return False
    places = [place for place, _ in inside]
    if REQUEST in places:
        # A middleware has made a request of its own.
        inside = inside[: places.index(REQUEST)]
    if _has_hook(inside):
        return True
    has_left = any(place == SENDING for place, _ in inside)
    if has_left or _replaces_another(cause, inside):
        return False
    return any(not _is_of_aiohttp(place[0]) for place, _ in inside)


def _replaces_another(cause: BaseException, inside: Frames) -> bool:
    """Say whether a failure was raised over one that concerns a server, in its frames.

    Its context may also be the failure of an earlier call.
    """
    own = {id(frame) for _, frame in inside}
    return any(
        isinstance(link, BaseException)
        and link is not cause
        and _speaks_of_server(link)
        and any(id(frame) in own for _, frame in frames_of(link))
        for link in raised_from(cause)
    )


def _speaks_of_server(cause: BaseException) -> bool:
    cause = peel(cause)
    if isinstance(cause, BaseExceptionGroup):
        return any(map(_speaks_of_server, cause.exceptions))
    is_one = isinstance(cause, aiohttp.ClientError | OSError)
    if is_one or not isinstance(cause, Exception):
        return True
    info = RetryInfo.of(cause)
    return info.fault == "server" or info.is_throttling_error or info.is_timeout_error


def _has_hook(frames: Frames) -> bool:
    return any(place[0] == _HOOKS for place, _ in frames)


def _is_of_aiohttp(module: str) -> bool:
    return module.partition(".")[0] in {"aiohttp", "aioretry_smithy"}


def _is_of_this_loop(connector: FrameType) -> bool:
    """Say whether a session is used in the event loop that it was made in."""
    loop = asyncio.get_running_loop()
    return getattr(connector.f_locals.get("self"), "_loop", loop) is loop
