"""Keep the permits that attempts hold; calls inside need no second permit."""

from __future__ import annotations

import asyncio
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .context import AttemptContext, ClientRequestContext

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._call.call import Call

_T = TypeVar("_T")


class Holder(Protocol):
    """An attempt, or a fetch that attempts wait for, as the code inside sees it."""

    @property
    def outer(self) -> Holder | None:
        """The enclosing holder, if any."""

    def holds(self, thing: object, call: Call) -> bool:
        """Say whether the holder has a thing, other than for *call* itself."""


_around: ContextVar[Holder | None] = ContextVar("aioretry_smithy_around", default=None)
"""The enclosing attempt or fetch, set only when a permit is taken."""


class Holdings:
    """The trial slots and permits that an attempt, or a call without attempts, holds.

    Tasks and connections that begin in an attempt keep its context variables, some for
    long. So this refers to nothing any more once the attempt is over.

    Args:
        call: The call; None of one that is over.
        outer: What the call is part of.
    """

    __slots__ = ("_call", "_derived", "_things", "outer")

    outer: Holder | None

    def __init__(self, call: Call | None, outer: Holder | None) -> None:
        self._call = call
        self.outer = outer
        # Objects of the users' may be equal to others.
        self._things: list[object] = []
        self._derived: list[Holdings] = []

    def holds(self, thing: object, call: Call) -> bool:
        """Say whether the attempt holds a thing, and not for that call itself."""
        return self._call is not call and any(each is thing for each in self._things)

    def add(self, *things: object) -> None:
        """Note what the attempt holds from now on."""
        self._things += things

    def remove(self, *things: object) -> None:
        """Remove things that were given back; each removal counts once."""
        for thing in things:
            for index, each in enumerate(self._things):
                if each is thing:
                    del self._things[index]
                    break

    def enter(self) -> None:
        """Let the running code use what the attempt holds."""
        if _around.get() is not self:
            _around.set(self)

    def own(self, derived: Holdings) -> None:
        """End the derived holdings together with these holdings."""
        self._derived.append(derived)

    def adopt(self, inner: Holdings) -> None:
        """Hold from now on what one request of the attempt has held until now."""
        self._things += inner._things
        # It is given back there.
        inner._things = self._things
        self.own(inner)

    def end(self) -> None:
        """Note that the attempt is over: no call is part of it any more."""
        while self._derived:
            self._derived.pop().end()
        self._things.clear()
        if _around.get() is self:
            _around.set(self.outer)
        self._call = self.outer = None

    async def end_after(self, deciding: Awaitable[_T]) -> _T:
        """Await the decision on a retry as part of the attempt, then end."""
        # The request may have been sent in a task of its own.
        self.enter()
        try:
            return await deciding
        finally:
            self.end()


class FetchHoldings:
    """The holdings of all attempts that wait for a token fetch at the moment."""

    __slots__ = ("_is_asked", "_joined", "_waiting")

    outer: None = None

    def __init__(self) -> None:
        self._waiting: list[Holder] = []
        self._joined: set[asyncio.Future[None]] = set()
        self._is_asked = False

    def holds(self, thing: object, call: Call) -> bool:
        """Say whether an attempt that waits for the fetch holds a thing."""
        # Fetches may wait for each other.
        if self._is_asked:
            return False
        self._is_asked = True
        try:
            return any(_is_held(each, thing, call) for each in self._waiting)
        finally:
            self._is_asked = False

    def enter_in(self, context: Context) -> None:
        """Make code that runs in *context* part of the fetch."""
        context.run(_around.set, self)

    def join(self) -> Holder | None:
        """Let the running code wait for the fetch; return what :meth:`leave` takes."""
        holder = _around.get()
        if holder is not None:
            self._waiting.append(holder)
            while self._joined:
                self._joined.pop().set_result(None)
        return holder

    def leave(self, holder: Holder | None) -> None:
        """Remove an attempt that has stopped waiting for the fetch."""
        if holder is not None:
            self._waiting.remove(holder)

    async def joined_before(self, task: asyncio.Task[Any]) -> None:
        """Wait until another one waits for the fetch, or a task is done before."""
        joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._joined.add(joined)
        try:
            await asyncio.wait((task, joined), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._joined.discard(joined)


def _is_held(holder: Holder | None, thing: object, call: Call) -> bool:
    while holder is not None:
        if holder.holds(thing, call):
            return True
        holder = holder.outer
    return False


def is_held(ctx: ClientRequestContext, thing: object) -> bool:
    """Say whether a request is made inside of an attempt that holds a thing."""
    return _is_held(_around.get(), thing, ctx.call)


def fetch_around() -> FetchHoldings | None:
    """Return the fetch that the running code is part of."""
    holder = _around.get()
    while holder is not None and not isinstance(holder, FetchHoldings):
        holder = holder.outer
    return holder


def holdings_of(ctx: ClientRequestContext) -> Holdings:
    """Return the holdings of an attempt, created on first use.

    From here on the running code is part of the attempt: what is asked for a thing may
    call listeners.
    """
    holdings: Holdings | None = ctx.holdings
    if holdings is None:
        maker = ctx.derived_from if isinstance(ctx, AttemptContext) else None
        around = _around.get() if maker is None else holdings_of(maker)
        # Nobody ends what the parts of a download hold, which outlast their call.
        call = None if ctx.call.is_over else ctx.call
        ctx.holdings = holdings = Holdings(call, around)
        if call is not None and maker is not None and isinstance(around, Holdings):
            around.own(holdings)
    holdings.enter()
    return holdings


def hand_over(inner: AttemptContext, outer: ClientRequestContext) -> None:
    """Move the holdings of a request to its attempt."""
    if inner.holdings is not None:
        holdings_of(outer).adopt(inner.holdings)
