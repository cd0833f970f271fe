"""Fault injection: descriptions of faults, and the client that injects faults."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import aiohttp

from .. import _checks as check
from .._bodies.response_content import TruncatedBody, read_whole
from .._call.recorder import record_failure, record_injected
from .._call.time_limits import passed_limit
from .._context.client import DecoratingClient, Decorator, HttpClient
from .._context.recording import close_result, record_cut, record_result
from .._errors import bad_argument, is_finite, is_plain_function
from .._failures.kept_cause import without_frames
from .._policies.conditions import checked_answer
from .._session.deadline import silence_limit
from .._text.printable import name_of
from ._transport import ScriptedBody, check_response, made_response

if TYPE_CHECKING:
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest


_SECONDS = "seconds, finite and >= 0, or a pair (low, high) of them"
_ERROR = "an exception, or a class of exceptions that needs no argument"


async def _wait(
    ctx: ClientRequestContext, request: HttpRequest, seconds: float
) -> None:
    """Wait as long as for a silent server: until the timeout of the request."""
    session = ctx.call.session
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

    def __init__(
        self,
        name: str,
        shown: str,
        rate: float,
        request_filter: Callable[[HttpRequest], bool] | None,
        *,
        answer: Callable[[HttpRequest], aiohttp.ClientResponse] | None = None,
        seconds: tuple[float, ...] | None = None,
        hangs: bool = False,
        cut_after: int | None = None,
    ) -> None:
        if not (is_finite(rate) and 0 <= rate <= 1):
            raise bad_argument("rate", rate, ">= 0 and <= 1")
        check.function("request_filter", request_filter, "the request")
        self._name = name
        self._shown = shown
        self._rate = rate
        self._request_filter = request_filter
        self._answer = answer
        self._seconds = seconds
        self._hangs = hangs
        self._cut_after = cut_after

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
        check_response(status, headers, body)

        def answer(request: HttpRequest) -> aiohttp.ClientResponse:
            return made_response(request, status, headers, body)

        # Headers and body may be long, and secret.
        shown = str(int(status))
        return InjectedFault("status", shown, rate, request_filter, answer=answer)

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
        made: object = error
        if isinstance(error, type) and issubclass(error, Exception):
            try:
                made = error()
            except Exception:
                raise bad_argument("error", error, _ERROR) from None
        if not isinstance(made, Exception):
            raise bad_argument("error", error, _ERROR)

        def answer(request: HttpRequest) -> aiohttp.ClientResponse:
            # A copy, since each call writes on its exception.
            raise without_frames(made)

        return InjectedFault("error", repr(made), rate, request_filter, answer=answer)

    @staticmethod
    def latency(
        seconds: float | tuple[float, float],
        *,
        rate: float = 1.0,
        request_filter: Callable[[HttpRequest], bool] | None = None,
    ) -> InjectedFault:
        """Delay a request.

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
        pair: tuple[float, ...] = (
            seconds if isinstance(seconds, tuple) else (seconds, seconds)
        )
        if len(pair) != 2 or not (
            all(map(is_finite, pair)) and 0 <= pair[0] <= pair[1]
        ):
            raise bad_argument("seconds", seconds, _SECONDS)
        shown = repr(seconds)
        return InjectedFault("latency", shown, rate, request_filter, seconds=pair)

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
        return InjectedFault("hang", "", rate, request_filter, hangs=True)

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
        if type(after) is not int or after < 0:
            raise bad_argument("after", after, "an int >= 0")
        shown = f"after={after}"
        return InjectedFault("cut_body", shown, rate, request_filter, cut_after=after)

    def __repr__(self) -> str:
        settings = [*filter(None, [self._shown]), f"rate={self._rate}"]
        if self._request_filter is not None:
            settings.append(f"request_filter={name_of(self._request_filter)}")
        return f"InjectedFault.{self._name}({', '.join(settings)})"

    def _strikes(self, request: HttpRequest, random: Callable[[], float]) -> bool:
        """Say whether the fault strikes a request."""
        fits = self._request_filter
        if fits is not None and not checked_answer("request_filter", fits(request)):
            return False
        return random() < self._rate


Enabled: TypeAlias = bool | Callable[["ClientRequestContext", "HttpRequest"], bool]
"""Whether faults are injected, for all requests or one."""


class FaultInjectingClient(DecoratingClient[HttpClient]):
    """Makes requests fail, wait and hang, in a test or on purpose in production.

    Add it first: then retries, circuit breakers, budgets and limits meet the faults as
    they would those of a server. The log of an answer or a failure that it makes has
    ``injected`` True and ``sent`` False, and says "injected" in its views.

    >>> decorator = FaultInjectingClient.new_decorator(
    ...     InjectedFault.latency((0.05, 0.2)),
    ...     InjectedFault.status(503, rate=0.1, headers={"Retry-After": "1"}),
    ...     InjectedFault.error(aiohttp.ServerDisconnectedError, rate=0.05),
    ... )
    >>> builder = SessionBuilder.standard(inside=[decorator])
    """

    _serves = "sessions"

    def __init__(
        self,
        delegate: HttpClient,
        faults: tuple[InjectedFault, ...],
        random: Callable[[], float],
        enabled: Enabled,
    ) -> None:
        super().__init__(delegate)
        self._faults = faults
        self._random = random
        self._enabled = enabled

    @classmethod
    def new_decorator(
        cls,
        *faults: InjectedFault,
        random: Callable[[], float] = random.random,
        enabled: Enabled = True,
    ) -> Decorator:
        """Return a decorator that injects faults.

        Args:
            faults: The faults, tried in this order for each request. The seconds of
                all latencies that affect it are added up; the first other fault that
                affects it decides, and no fault after that is tried.
            random: Returns numbers in [0, 1), one for each fault that is tried, and one
                more for a latency that affects the request.
            enabled: Whether faults are injected. False: the chain is as if this
                decorator were not in it. Or a plain function of the context and the
                request, asked for each request.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> def is_fault_test(ctx, request):
        ...     return request.headers.get("X-Fault-Test") == "1"
        >>> decorator = FaultInjectingClient.new_decorator(
        ...     InjectedFault.hang(), enabled=is_fault_test
        ... )
        """
        for number, fault in enumerate(faults):
            if not isinstance(fault, InjectedFault):
                expected = "an InjectedFault, such as InjectedFault.hang()"
                raise bad_argument(f"faults[{number}]", fault, expected)
        if not is_plain_function(random):
            raise bad_argument("random", random, "a function that returns a number")
        if not (isinstance(enabled, bool) or is_plain_function(enabled)):
            expected = "True, False, or a plain function of ctx and request"
            raise bad_argument("enabled", enabled, expected)
        if enabled is False:
            return lambda delegate: delegate
        return lambda delegate: cls(delegate, faults, random, enabled)

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Wait, then answer or raise in place of the server, or send the request on."""
        try:
            seconds, fault = self._struck_by(ctx, request)
        except BaseException as cause:
            record_failure(ctx, cause)
            raise
        answer = await self._answer(ctx, request, seconds, fault)
        if answer is not None:
            return answer
        response = await self.delegate.execute(ctx, request)
        try:
            if fault is not None and fault._cut_after is not None:
                after = fault._cut_after
                cut = partial(record_cut, ctx.call, ctx.record.outcome, after)
                response.content = TruncatedBody(response, after, cut)
        except BaseException as cause:
            record_failure(ctx, cause)
            close_result(ctx, response)
            raise
        if ctx.attempt is not None and ctx.call.reads_whole_bodies:
            # As the transport does; what is cut here stands for what the server sent.
            await read_whole(ctx, response)
        return response

    def _struck_by(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> tuple[float, InjectedFault | None]:
        """Return the seconds that *request* waits, and the fault after that."""
        seconds, enabled = 0.0, self._enabled
        if callable(enabled) and not checked_answer("enabled", enabled(ctx, request)):
            return seconds, None
        for fault in self._faults:
            if fault._strikes(request, self._random):
                if fault._seconds is None:
                    return math.inf if fault._hangs else seconds, fault
                low, high = fault._seconds
                seconds += low + (high - low) * self._random()
        return seconds, None

    async def _answer(
        self,
        ctx: ClientRequestContext,
        request: HttpRequest,
        seconds: float,
        fault: InjectedFault | None,
    ) -> aiohttp.ClientResponse | None:
        """Wait, then answer or raise; None where the request is to go on.

        Whatever ends the wait, it was injected.
        """
        try:
            if seconds:
                await _wait(ctx, request, seconds)
            if fault is None or fault._answer is None:
                return None
            answer = fault._answer(request)
            record_result(ctx, answer)
        except BaseException as cause:
            record_failure(ctx, cause)
            record_injected(ctx.record)
            raise
        record_injected(ctx.record)
        return answer

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        settings = [*map(repr, self._faults)]
        if callable(self._enabled):
            settings.append(f"enabled={name_of(self._enabled)}")
        return f"{type(self).__name__}({', '.join(settings)})"
