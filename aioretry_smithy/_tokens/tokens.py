"""A token cache: concurrent calls share a single fetch."""

from __future__ import annotations

import asyncio
import inspect
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from .._context.holdings import FetchHoldings
from .._errors import UnprocessedRequestError
from .._failures.failure import judge
from .._failures.kept_cause import without_frames
from .._request.arguments import is_header_value
from .._text.printable import name_without_arguments

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    Fetch: TypeAlias = Callable[[], Awaitable[str]]


_fetching: ContextVar[tuple[Flight, ...]] = ContextVar(
    "aioretry_smithy_fetching", default=()
)
"""The fetches that the code is part of; a task that outlives one is part no longer."""


@dataclass(slots=True, eq=False, repr=False)
class Token:
    """A fetched token, compared by identity: two tokens may have the same text."""

    text: str


@dataclass(slots=True, eq=False)
class Flight:
    """A fetch of a token that several calls may wait for."""

    tokens: Tokens
    """The cache of the fetched token."""

    here: _InLoop
    """What the event loop of the fetch has."""

    task: Task[Token] = field(init=False)
    """The task of the fetch."""

    is_over: bool = False
    """Whether the fetch is over, though tasks that it began may go on."""

    holdings: FetchHoldings = field(default_factory=FetchHoldings)
    """The holdings of the waiting calls."""

    waiting: int = 0
    was_failure_given: bool = False
    traceback: TracebackType | None = None

    async def landed(self, seconds: float | None) -> Token | None:
        """Wait up to *seconds* for the token; None at the timeout.

        The last one to give up ends the fetch.

        Raises:
            Exception: What the fetch has raised, another object for each who waits.
        """
        task, failure = self.task, None
        self.waiting += 1
        holder = self.holdings.join()
        try:
            await asyncio.wait([task], timeout=seconds)
            if not task.done():
                return None
            if task.cancelled():
                message = "the fetch of the token was cancelled"
                raise UnprocessedRequestError(message)
            failure = task.exception()
            if failure is None:
                return task.result()
            raise self._own(failure)
        finally:
            self.waiting -= 1
            self.holdings.leave(holder)
            if not self.waiting:
                self._end()
            # The traceback of what is raised has this frame: no cycle.
            del task, failure

    def leave(self) -> bool:
        """Let the next call without a token fetch anew; say if this was the newest.

        Perhaps where the garbage is collected, in another loop or in none.
        """
        is_wanted = self.here.flight is self
        if is_wanted:
            self.here.flight = None
        return is_wanted

    def _end(self) -> None:
        """Cancel a fetch that no call waits for."""
        self.leave()
        if not self.task.get_loop().is_closed():
            self.task.cancel()
        # The frames of the failure have this object.
        self.traceback = None
        del self.task

    def _own(self, failure: BaseException) -> BaseException:
        """Return the failure for the first waiting call, and copies for other calls.

        A call notes on its failure what became of it.
        """
        if self.was_failure_given:
            return without_frames(failure).with_traceback(self.traceback)
        # Before it gets the frames of those who raise it.
        self.was_failure_given, self.traceback = True, failure.__traceback__
        return failure


@dataclass(slots=True, eq=False)
class _InLoop:
    """The newest token, and the fetch under way, of one event loop."""

    token: Token | None = None
    flight: Flight | None = None


class Tokens:
    """Has the newest token of each event loop, and fetches one where there is none."""

    __slots__ = ("__weakref__", "_fetch", "_in_loops", "_scheme")

    def __init__(self, fetch: Fetch, scheme: str | None) -> None:
        self._fetch = fetch
        self._scheme = scheme
        # A task, and so a fetch, belongs to one loop.
        self._in_loops: WeakKeyDictionary[AbstractEventLoop, _InLoop]
        self._in_loops = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """The user's function by its name, for descriptions and errors."""
        return name_without_arguments(self._fetch)

    @property
    def known(self) -> Token | None:
        """The newest token; None where one has to be fetched."""
        return self._here().token

    @property
    def are_being_fetched_here(self) -> bool:
        """Whether the running code is part of a fetch, which must not wait for it."""
        return any(each.tokens is self and not each.is_over for each in _fetching.get())

    async def newest(self, seconds: float | None) -> Token | None:
        """Return the newest token, fetched within *seconds* if missing.

        None where that is not done by then.

        Raises:
            Exception: The fetch has failed.
        """
        here = self._here()
        if here.token is not None:
            return here.token
        flight = here.flight
        if flight is None:
            flight = here.flight = Flight(self, here)
            self._take_off(flight)
        return await flight.landed(seconds)

    def reject(self, token: Token) -> None:
        """Note that a server refuses a token; a newer one stays."""
        here = self._here()
        if here.token is token:
            here.token = None

    def _here(self) -> _InLoop:
        loop = asyncio.get_running_loop()
        here = self._in_loops.get(loop)
        if here is None:
            # What waits for a token there keeps a loop alive that was closed.
            for known in self._in_loops.keyrefs():
                closed = known()
                if closed is not None and closed.is_closed():
                    self._in_loops.pop(closed, None)
            here = self._in_loops[loop] = _InLoop()
        return here

    def _take_off(self, flight: Flight) -> None:
        """Begin a fetch, for all calls that wait for the token.

        In a task without the options, the deadline and the other context variables of
        the first caller: it is for all of them.
        """
        context, around = Context(), _fetching.get()
        context.run(_fetching.set, (*around, flight))
        flight.holdings.enter_in(context)
        # It may begin, and even end, before this returns.
        task = asyncio.get_running_loop().create_task(
            self._fetched(flight), context=context
        )
        task.add_done_callback(_look_at)
        flight.task = task

    async def _fetched(self, flight: Flight) -> Token:
        try:
            token = Token(await self._text())
        finally:
            flight.is_over = True
            is_wanted = flight.leave()
        if is_wanted:
            flight.here.token = token
        return token

    async def _text(self) -> str:
        fetching = self._fetch()
        if not inspect.isawaitable(fetching):
            raise self._wrong(fetching, "an async function")
        text = await fetching
        if not is_header_value(text):
            raise self._wrong(text, "a text that a header may carry, without line ends")
        scheme = self._scheme
        if scheme is not None and text.lower().startswith(f"{scheme.lower()} "):
            expected = f"without {scheme!r}, which is put before it; or scheme=None"
            raise self._wrong(text, expected)
        return text

    def _wrong(self, returned: object, expected: str) -> TypeError:
        """Make the error for what is no token; it does not show what may be secret."""
        what = "a text" if isinstance(returned, str) else type(returned).__name__
        if returned == "":
            what = "an empty text"
        error = TypeError(f"fetch: {self.name} gave {what} (expected: {expected})")
        # No retry would mend it.
        judge(error).raised_by_caller = True
        return error


def _look_at(task: Task[Token]) -> None:
    """Retrieve the failure of a task, lest asyncio logs that nobody has."""
    if not task.cancelled():
        task.exception()
