"""Describe faults, choose the requests that they strike, and carry them out."""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import aiohttp

from .._bodies.new_response import TruncatedBody
from .._call.time_limits import passed_limit
from .._context.client import chain_of
from .._context.recording import record_cut
from .._errors import bad_argument, is_finite
from .._failures.kept_cause import without_frames
from .._rules.conditions import check_function, checked_answer
from .._session.aiohttp_transport import AiohttpTransport
from .._session.deadline import silence_limit
from .._text import name_of
from ._transport import check_response, made_response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .._context.client import HttpClient
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from ._transport import ScriptedBody

_SECONDS = "seconds, finite and >= 0, or a pair (low, high) of them"
_ERROR = "an exception, or a class of exceptions that needs no argument"


class FaultKind:
    """Does nothing to a request; the base of the other kinds."""

    name: ClassVar[str]
    """The method of :class:`InjectedFault` that makes it."""

    shown: str = ""
    """The setting of its own, as it would be written in code."""

    async def answer(
        self, delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse | None:
        """Answer in place of *delegate*, or raise; None: the request goes on."""
        return None

    def spoil(
        self, ctx: ClientRequestContext, response: aiohttp.ClientResponse
    ) -> None:
        """Change the response to a request that went on."""


class Status(FaultKind):
    """Answers in place of the server."""

    name = "status"

    def __init__(
        self, status: int, headers: Mapping[str, str] | None, body: ScriptedBody
    ) -> None:
        check_response(status, headers, body)
        self._response = status, headers, body
        # Headers and body may be long, and secret.
        self.shown = str(int(status))

    async def answer(
        self, delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Answer."""
        return made_response(request, *self._response)


class Failure(FaultKind):
    """Raises an exception."""

    name = "error"

    def __init__(self, error: object) -> None:
        made = error
        if isinstance(error, type) and issubclass(error, Exception):
            try:
                made = error()
            except Exception:
                raise bad_argument("error", error, _ERROR) from None
        if not isinstance(made, Exception):
            raise bad_argument("error", error, _ERROR)
        self._error = made
        self.shown = repr(made)

    async def answer(
        self, delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
    ) -> None:
        """Raise a copy, since each call writes on its exception."""
        raise without_frames(self._error)


class Latency(FaultKind):
    """Lets requests wait; it is added up over several of them."""

    name = "latency"

    def __init__(self, seconds: float | tuple[float, ...]) -> None:
        pair = seconds if isinstance(seconds, tuple) else (seconds, seconds)
        if len(pair) != 2 or not (
            all(map(is_finite, pair)) and 0 <= pair[0] <= pair[1]
        ):
            raise bad_argument("seconds", seconds, _SECONDS)
        self._low, self._high = pair
        self.shown = repr(seconds)

    def draw(self, random: Callable[[], float]) -> float:
        """Return how long a request is to wait."""
        return self._low + (self._high - self._low) * random()


class Hang(FaultKind):
    """Never answers."""

    name = "hang"

    async def answer(
        self, delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
    ) -> None:
        """Wait until a limit of the request passes, or for good."""
        await wait_for_answer(delegate, ctx, request, math.inf)


class Cut(FaultKind):
    """Cuts off bodies."""

    name = "cut_body"

    def __init__(self, after: int) -> None:
        if type(after) is not int or after < 0:
            raise bad_argument("after", after, "an int >= 0")
        self._after = after
        self.shown = f"after={after}"

    def spoil(
        self, ctx: ClientRequestContext, response: aiohttp.ClientResponse
    ) -> None:
        """Let the body of *response* be cut."""
        cut = partial(record_cut, ctx.call, ctx.record.outcome, self._after)
        response.content = TruncatedBody(response, self._after, cut)


async def wait_for_answer(
    delegate: HttpClient,
    ctx: ClientRequestContext,
    request: HttpRequest,
    seconds: float,
) -> None:
    """Wait, as long as a request may wait for a server that says nothing.

    Raises:
        TimeoutError: A limit of the request has passed.
    """
    transport = chain_of(delegate)[-1]
    session = None
    if isinstance(transport, AiohttpTransport):
        session = transport.session()
    limit = math.inf if session is None else silence_limit(request, session)
    wait = min(limit, seconds)
    try:
        async with asyncio.timeout_at(ctx.deadline):
            if wait == math.inf:
                await asyncio.get_running_loop().create_future()
            await asyncio.sleep(wait)
    except TimeoutError as cut:
        make_error = passed_limit(ctx, cut) or TimeoutError
        raise make_error() from cut
    if wait < seconds:
        raise aiohttp.SocketTimeoutError("Timeout on reading data from socket")


class InjectedFault:
    """A fault for a :class:`FaultInjectingClient` to inject; made by its methods.

    Each takes a *rate*, the part of the requests that it affects, from 0 to 1, and a
    *request_filter*, a plain function that says whether it may affect a request; by
    default it may affect any. A fault never changes, so decorators may share it.

    >>> InjectedFault.status(503, rate=0.1)
    InjectedFault.status(503, rate=0.1)
    """

    __slots__ = ("_kind", "_rate", "_request_filter")

    def __init__(
        self,
        kind: FaultKind,
        rate: float,
        request_filter: Callable[[HttpRequest], bool] | None,
    ) -> None:
        if not (is_finite(rate) and 0 <= rate <= 1):
            raise bad_argument("rate", rate, ">= 0 and <= 1")
        check_function("request_filter", request_filter, "the request")
        self._kind = kind
        self._rate = rate
        self._request_filter = request_filter

    @staticmethod
    def status(
        status: int,
        *,
        rate: float = 1.0,
        headers: Mapping[str, str] | None = None,
        body: ScriptedBody = b"",
        request_filter: Callable[[HttpRequest], bool] | None = None,
    ) -> InjectedFault:
        """Answer with a status, and send nothing.

        Args:
            status: The status, from 100 to 999.
            rate: The part of the requests that are answered, from 0 to 1.
            headers: The headers of the answer, such as ``{"Retry-After": "1"}``.
            body: Its body: bytes, text, or a dict or list for JSON. Text and JSON get
                their ``Content-Type`` unless *headers* has one.
            request_filter: Says whether the fault may affect a request.

        Raises:
            ValueError: An argument is not as described.
        """
        return InjectedFault(Status(status, headers, body), rate, request_filter)

    @staticmethod
    def error(
        error: Exception | type[Exception],
        *,
        rate: float = 1.0,
        request_filter: Callable[[HttpRequest], bool] | None = None,
    ) -> InjectedFault:
        """Raise an exception, and send nothing.

        Args:
            error: The exception, of which each request gets a copy; or its class.
            rate: The part of the requests that fail, from 0 to 1.
            request_filter: Says whether the fault may affect a request.

        Raises:
            ValueError: An argument is not as described.

        >>> InjectedFault.error(aiohttp.ServerDisconnectedError, rate=0.01)
        InjectedFault.error(ServerDisconnectedError('Server disconnected'), rate=0.01)
        """
        return InjectedFault(Failure(error), rate, request_filter)

    @staticmethod
    def latency(
        seconds: float | tuple[float, float],
        *,
        rate: float = 1.0,
        request_filter: Callable[[HttpRequest], bool] | None = None,
    ) -> InjectedFault:
        """Let a request wait before it goes on.

        The deadlines of the call and of the attempt cut the wait, as does a shorter
        ``sock_read`` of the session or the request.

        Args:
            seconds: How long, finite and >= 0; or the shortest and the longest wait.
            rate: The part of the requests that wait, from 0 to 1.
            request_filter: Says whether the fault may affect a request.

        Raises:
            ValueError: An argument is not as described.

        >>> InjectedFault.latency((0.1, 0.5))
        InjectedFault.latency((0.1, 0.5), rate=1.0)
        """
        return InjectedFault(Latency(seconds), rate, request_filter)

    @staticmethod
    def hang(
        *,
        rate: float = 1.0,
        request_filter: Callable[[HttpRequest], bool] | None = None,
    ) -> InjectedFault:
        """Never answer, and send nothing.

        The deadlines of the call and of the attempt end it, and a ``sock_read`` of the
        session or the request; where there are none, only a cancellation does.

        Args:
            rate: The part of the requests that get no answer, from 0 to 1.
            request_filter: Says whether the fault may affect a request.

        Raises:
            ValueError: An argument is not as described.
        """
        return InjectedFault(Hang(), rate, request_filter)

    @staticmethod
    def cut_body(
        *,
        after: int,
        rate: float = 1.0,
        request_filter: Callable[[HttpRequest], bool] | None = None,
    ) -> InjectedFault:
        """Send the request, and cut off the body of the answer.

        Reading the body raises an :class:`aiohttp.ClientPayloadError` after so many
        bytes, and the connection is closed if it is still in use. A body that is no
        longer than that comes whole.

        Args:
            after: How many bytes of the body arrive, decoded, an int >= 0.
            rate: The part of the responses that are cut, from 0 to 1.
            request_filter: Says whether the fault may affect a request.

        Raises:
            ValueError: An argument is not as described.

        >>> InjectedFault.cut_body(after=1000, rate=0.05)
        InjectedFault.cut_body(after=1000, rate=0.05)
        """
        return InjectedFault(Cut(after), rate, request_filter)

    def __repr__(self) -> str:
        settings = [*filter(None, [self._kind.shown]), f"rate={self._rate}"]
        if self._request_filter is not None:
            settings.append(f"request_filter={name_of(self._request_filter)}")
        return f"InjectedFault.{self._kind.name}({', '.join(settings)})"

    def _strikes(self, request: HttpRequest, random: Callable[[], float]) -> bool:
        """Say whether the fault strikes a request."""
        fits = self._request_filter
        if fits is not None and not checked_answer("request_filter", fits(request)):
            return False
        return random() < self._rate
