"""Describe a fault, and choose the requests that it strikes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import bad_argument, is_finite
from .._rules.conditions import check_function, checked_answer
from .._text import name_of
from ._fault_kinds import Cut, Failure, Hang, Latency, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .._request.request import HttpRequest
    from ._answer import ScriptedBody
    from ._fault_kinds import FaultKind


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
        settings = [*self._kind.shown(), f"rate={self._rate}"]
        if self._request_filter is not None:
            settings.append(f"request_filter={name_of(self._request_filter)}")
        return f"InjectedFault.{self._kind.name}({', '.join(settings)})"

    def _strikes(self, request: HttpRequest, random: Callable[[], float]) -> bool:
        """Say whether the fault strikes a request."""
        fits = self._request_filter
        if fits is not None and not checked_answer("request_filter", fits(request)):
            return False
        return random() < self._rate
