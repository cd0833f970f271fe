"""Health checks: unhealthy endpoints get no requests."""

from __future__ import annotations

import asyncio
import math
from asyncio import AbstractEventLoop, get_running_loop
from contextlib import suppress
from contextvars import Context
from typing import TYPE_CHECKING, Final, Self

import aiohttp
from yarl import URL

from .. import _checks as check
from .._clock import chance
from .._errors import bad_argument
from .._text.mask import DEFAULT_MASK
from .ejection import note_health
from .group import EndpointGroup, GroupOfGroups

if TYPE_CHECKING:
    from types import TracebackType

    from .._request.request import HttpRequest
    from .roster import Roster
    from .state import EndpointState


_JITTER: Final = 0.2
_GOOD: Final = range(200, 300)


class HealthCheckedEndpointGroup(GroupOfGroups):
    """A group whose endpoints are asked for their health, again and again.

    Those that do not answer with a status of 2xx get no requests, unless none does:
    then all are used. Nothing is sent before each was asked once. Use it in an ``async
    with`` block; outside of it there is nothing that asks. Whoever uses the *group*
    itself in this time profits from the checks. After Armeria's
    ``HealthCheckedEndpointGroup``.

    Args:
        group: The endpoints.
        path: What to ask for, joined to the URL of each as in calls.
        interval: Seconds between two checks of an endpoint, > 0; 20 % more or less.
        timeout: Seconds that an answer may take, > 0.
        method: The method of the checks. Redirects are not followed.
        session: The session that asks, for its TLS settings and headers; a plain one
            by default. Decorators of it do not see the checks.

    Raises:
        ValueError: An argument is not as described.

    >>> group = EndpointGroup.of("http://a.example", "http://b.example")
    >>> checked = HealthCheckedEndpointGroup(group, "/healthz")

    Then, in a coroutine, ``async with checked, SessionBuilder(checked).build() as
    session:``.
    """

    def __init__(
        self,
        group: EndpointGroup,
        path: str,
        *,
        interval: float = 3.0,
        timeout: float = 1.0,
        method: str = "GET",
        session: aiohttp.ClientSession | None = None,
    ) -> None:
        check.kind("group", group, EndpointGroup)
        _check(path, method, session)
        check.positive("interval", interval)
        check.positive("timeout", timeout)
        super().__init__((group,), group.name, group._service)
        self._warn = group._warn
        self._path, self._method = path, method.upper()
        self._interval, self._seconds = interval, timeout
        self._given = session
        # None while no checks run.
        self._task: asyncio.Task[None] | None = None
        self._is_due = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Begin the checks.

        Raises:
            RuntimeError: The group is checked already.
        """
        loop = get_running_loop()
        rosters = super()._rosters(loop)
        # One that was closed asks no more, though it has not ended this.
        is_asking = self._task is not None and not self._task.get_loop().is_closed()
        if is_asking or any(each.checker is not None for each in rosters):
            message = f"endpoint group {self._name!r} is checked already"
            raise RuntimeError(message)
        self._is_due = asyncio.Event()
        self._take(rosters)
        # It belongs to no call, so it takes over no context.
        self._task = loop.create_task(self._ask_for_ever(loop), context=Context())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the checks; forget their results."""
        task, self._task = self._task, None
        if task is None:
            return
        rosters = super()._rosters(task.get_loop())
        task.cancel()
        try:
            # As long as the caller is not cancelled itself.
            await asyncio.wait([task])
        finally:
            for roster in rosters:
                roster.checker = None
                for state in roster.states:
                    state.health = None
                roster.review()
                roster.wake()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._members[0]!r},"
            f" {DEFAULT_MASK.text(self._path)!r}, interval={self._interval},"
            f" timeout={self._seconds}, method={self._method!r})"
        )

    def _rosters(
        self, loop: AbstractEventLoop, request: HttpRequest | None = None
    ) -> tuple[Roster, ...]:
        """Return the rosters that may serve a request, while the checks run.

        Raises:
            RuntimeError: It is not checked now, or in another event loop.
        """
        if self._task is None or self._task.get_loop() is not loop:
            message = (
                f"endpoint group {self._name!r} is to be used in its block, in the same"
                " event loop: async with HealthCheckedEndpointGroup(...) as group:"
            )
            raise RuntimeError(message)
        return super()._rosters(loop, request)

    def _take(self, rosters: tuple[Roster, ...]) -> None:
        for roster in rosters:
            if roster.checker is None:
                roster.checker = self._is_due.set
                roster.review()

    async def _ask_for_ever(self, loop: AbstractEventLoop) -> None:
        session = self._given or aiohttp.ClientSession()
        try:
            while True:
                self._is_due.clear()
                rosters = super()._rosters(loop)
                self._take(rosters)
                await self._ask_all(session, rosters)
                seconds = self._interval * (1 + _JITTER * (2 * chance() - 1))
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._is_due.wait()
        finally:
            if self._given is None:
                await session.close()

    async def _ask_all(
        self, session: aiohttp.ClientSession, rosters: tuple[Roster, ...]
    ) -> None:
        """Check all endpoints at once; the results count when all have answered."""
        for roster in rosters:
            roster.catch_up()
        states = [each for roster in rosters for each in roster.states if each.weight]
        answers = await asyncio.gather(*(self._ask(session, each) for each in states))
        for state, answer in zip(states, answers, strict=True):
            # One that has left meanwhile is nobody's business.
            if any(each is state for each in state.roster.states):
                is_well = not isinstance(answer, Exception) and answer in _GOOD
                note_health(state, is_well=is_well)
        for roster in rosters:
            roster.review()
            roster.wake()
        self._warn_of(session, answers)

    async def _ask(
        self, session: aiohttp.ClientSession, state: EndpointState
    ) -> int | Exception:
        """Check an endpoint past the decorators of the session; return its health."""
        asked = self._service.find(self._path) or state.endpoint.url
        inner = state.middleware
        try:
            response = await type(session)._request(
                session,
                self._method,
                state.url_of(asked),
                allow_redirects=False,
                raise_for_status=False,
                timeout=aiohttp.ClientTimeout(self._seconds, ceil_threshold=math.inf),
                middlewares=None if inner is None else (*session._middlewares, inner),
            )
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # aiohttp cancels what waits for a connection of a session that is closed.
            return aiohttp.ClientConnectionError("the request was cancelled")
        except Exception as error:
            return error.with_traceback(None)
        response.release()
        return response.status

    def _warn_of(
        self, session: aiohttp.ClientSession, answers: list[int | Exception]
    ) -> None:
        """Warn if checks fail on this side: a closed session, a wrong certificate."""
        name, kind = self._name, aiohttp.ClientConnectorCertificateError
        if session.closed:
            self._warn(f"endpoint group {name!r}: the session of the checks is closed")
        elif answers and all(isinstance(each, kind) for each in answers):
            self._warn(
                f"endpoint group {name!r}: all checks fail by certificate, the first"
                f" with: {answers[0]}; give them a session= that trusts it"
            )


def _check(path: object, method: object, session: object) -> None:
    if not (isinstance(path, str) and path) or URL(path).absolute:
        raise bad_argument("path", path, "a path, such as '/healthz'")
    if not (isinstance(method, str) and method.isalpha()):
        raise bad_argument("method", method, "a method, such as 'GET'")
    if not (session is None or isinstance(session, aiohttp.ClientSession)):
        raise bad_argument("session", session, "an aiohttp.ClientSession or None")
