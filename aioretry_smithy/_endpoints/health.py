"""Leave endpoints alone that say that they are not well."""

from __future__ import annotations

from asyncio import get_running_loop
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from .._errors import bad_argument, check_positive
from .checks import HealthChecks
from .choice import give_up
from .group import EndpointGroup

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import MutableMapping
    from types import TracebackType
    from typing import Self

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .choice import Chosen
    from .roster import Roster, Waiting
    from .state import EndpointState


class HealthCheckedEndpointGroup(EndpointGroup):
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
        if not isinstance(group, EndpointGroup):
            raise bad_argument("group", group, "an EndpointGroup")
        _check(path, method, session)
        check_positive("interval", interval)
        check_positive("timeout", timeout)
        self._group = group
        self._name, self._service = group.name, group._service
        self._checks = HealthChecks(
            group, path, method.upper(), interval, timeout, session
        )

    async def __aenter__(self) -> Self:
        """Begin the checks.

        Raises:
            RuntimeError: The group is checked already.
        """
        self._checks.begin(get_running_loop())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the checks."""
        await self._checks.end()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._group!r}, {self._checks})"

    def _used_in(self, loop: AbstractEventLoop) -> EndpointGroup:
        """Return the group, if it is checked now.

        Raises:
            RuntimeError: It is not, or in another event loop.
        """
        if self._checks.loop is not loop:
            message = (
                f"endpoint group {self._name!r} is to be used in its block, in the same"
                " event loop: async with HealthCheckedEndpointGroup(...) as group:"
            )
            raise RuntimeError(message)
        return self._group

    @property
    def placeholder(self) -> URL:
        """A base URL for sessions, which lets credentials go to no other origin."""
        return self._group.placeholder

    @property
    def _has_addresses(self) -> bool:
        return self._group._has_addresses

    @property
    def _has_one_name(self) -> bool:
        return self._group._has_one_name

    def _warn_of_proxy(self) -> None:
        self._group._warn_of_proxy()

    def _parts(self) -> tuple[MutableMapping[Waiting, bool], ...]:
        return self._group._parts()

    def _rosters(
        self, loop: AbstractEventLoop, request: HttpRequest | None = None
    ) -> tuple[Roster, ...]:
        return self._used_in(loop)._rosters(loop, request)

    async def _is_ready(self, loop: AbstractEventLoop, until: float) -> bool:
        is_ready = await self._used_in(loop)._is_ready(loop, until)
        self._used_in(loop)
        return is_ready

    async def _change(
        self, loop: AbstractEventLoop, rosters: tuple[Roster, ...], until: float
    ) -> None:
        await self._group._change(loop, rosters, until)

    def _states(self) -> tuple[EndpointState, ...]:
        return self._group._states()

    def _pick(
        self, ctx: ClientRequestContext, request: HttpRequest | None
    ) -> Chosen | None:
        return self._used_in(ctx.call.loop)._pick(ctx, request)

    async def _wait(
        self, ctx: ClientRequestContext, request: HttpRequest | None
    ) -> Chosen:
        chosen = await self._used_in(ctx.call.loop)._wait(ctx, request)
        try:
            self._used_in(ctx.call.loop)
        except RuntimeError:
            give_up(chosen)
            raise
        return chosen


def _check(path: object, method: object, session: object) -> None:
    if not (isinstance(path, str) and path) or URL(path).absolute:
        raise bad_argument("path", path, "a path, such as '/healthz'")
    if not (isinstance(method, str) and method.isalpha()):
        raise bad_argument("method", method, "a method, such as 'GET'")
    if not (session is None or isinstance(session, aiohttp.ClientSession)):
        raise bad_argument("session", session, "an aiohttp.ClientSession or None")
