"""Keep a list of endpoints fresh while it is used."""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from .._clock import chance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._request.endpoint import Endpoint
    from .roster import Roster
    from .sources import FoundSource


_logger = logging.getLogger("aioretry_smithy")

_MOST: Final = 100


class WarnOnce:
    """Logs each warning once, as a list is asked for again and again.

    It logs no more than a hundred: what they tell of may be another each time.
    """

    __slots__ = ("_logged",)

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def __call__(self, message: str) -> None:
        """Log *message* unless it was logged before."""
        if message not in self._logged and len(self._logged) < _MOST:
            self._logged.add(message)
            _logger.warning("%s", message)


QUERY_TIME: Final = 5.0
"""The seconds after which a query has failed."""

_NO_TTL: Final = 10.0
"""The seconds that an answer holds which has no time to live."""

_FIRST_PAUSE: Final = 1.0
_DOUBLINGS: Final = 5
_JITTER: Final = 0.2


class Listed(NamedTuple):
    """An endpoint of a list."""

    endpoint: Endpoint
    """The endpoint, with its weight."""

    rank: int = 0
    """A higher one serves only while none of a lower one is well."""

    is_reserve: bool = False
    """Whether the endpoint serves only while no other one can be reached."""


class Answer(NamedTuple):
    """Holds the result of a query: a list of endpoints, and for how long it holds."""

    listed: Sequence[Listed]
    """The endpoints; empty if the name does not exist."""

    ttl: float | None = None
    """Seconds for which the answer is valid; None if unknown."""


class Discovery:
    """Queries a list of endpoints again when it is used and out of date.

    A query runs in a task of its own, at most one at a time, and no caller's end ends
    it. Between queries there is neither task nor timer. The list keeps its order:
    endpoints that stay have their places, new ones come last.

    An empty answer is believed when the next one says the same. It goes by the clock of
    one event loop: :meth:`reset` it before its use in another one.

    A query that takes longer than 5 s is cancelled, unless it holds a thread: that goes
    on, none is begun beside it, and its late answer counts.

    Args:
        source: Finds the endpoints, or raises.
        roster: Gets each list, and why a query has brought none.
    """

    due_at: float
    """Until then the list may serve, and :meth:`use` has nothing to do."""

    asks_at: float
    """From then on :meth:`use` begins a query; ``inf`` while one is under way.

    Whoever waits for a list looks again at this time, and when a query has failed.
    """

    def __init__(self, source: FoundSource, roster: Roster) -> None:
        self._source = source
        self._roster = roster
        self._task: asyncio.Task[Answer] | None = None
        self._forget()

    def use(self, now: float) -> bool:
        """Begin a query if one is due; say whether the present list may serve.

        It may not before there is one, nor where it expired longer than the longest
        time of *refresh* ago, unless the last query failed.
        """
        if now < self.due_at:
            return True
        if now >= self.asks_at:
            self._begin()
        return now <= self._serves_until

    def reset(self) -> None:
        """Cancel the query that is under way, and forget all that is known."""
        task, self._task = self._task, None
        self._forget()
        if task is not None:
            # Its loop may be closed, or be another thread's.
            with suppress(RuntimeError):
                task.get_loop().call_soon_threadsafe(task.cancel, context=Context())

    def _forget(self) -> None:
        self._listed: dict[Endpoint, Listed] | None = None
        self._failures = 0
        self._was_empty = self._is_late = False
        self.asks_at = self._expires_at = -math.inf
        self._settle()

    def _settle(self) -> None:
        """Find out until when the list may serve, and when the next query is due."""
        if self._failures and self._listed is not None:
            self._serves_until = math.inf
        else:
            self._serves_until = self._expires_at + self._source.refresh[1]
        self.due_at = min(self.asks_at, self._serves_until)

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        # It belongs to no call, so nothing of it takes over a context.
        self._task = task = loop.create_task(self._source(), context=Context())
        timer = loop.call_later(QUERY_TIME, self._be_late, task, context=Context())
        task.add_done_callback(partial(self._end, timer), context=Context())
        self.asks_at = math.inf
        self._settle()

    def _be_late(self, task: asyncio.Task[Answer]) -> None:
        """Count a query as failed at the timeout."""
        if task is not self._task:
            return
        if self._source.is_cancellable:
            # It is forgotten at once, as it may take its time to end even so.
            self._task = None
            task.cancel()
        self._is_late = self._task is not None
        self._failures += 1
        self._fail(TimeoutError(f"no answer within {QUERY_TIME:g} s"))

    def _end(self, timer: asyncio.TimerHandle, task: asyncio.Task[Answer]) -> None:
        """Take the result of a query, unless the query was abandoned."""
        timer.cancel()
        failure = (
            asyncio.CancelledError("the query was cancelled")
            if task.cancelled()
            else task.exception()
        )
        if task is not self._task:
            return
        self._task = None
        was_late, self._is_late = self._is_late, False
        if failure is None:
            self._take(task.result())
        else:
            # One that is late has counted already.
            self._failures += not was_late
            self._fail(failure)

    def _fail(self, failure: BaseException) -> None:
        if self._task is None:
            self.asks_at = asyncio.get_running_loop().time() + self._pause()
        self._settle()
        self._roster.note_failed_query(failure)

    def _pause(self) -> float:
        """Return the seconds to the next query after a failed one."""
        doublings = min(self._failures, _DOUBLINGS + 1) - 1
        return _FIRST_PAUSE * 2.0**doublings * (1 + _JITTER * (2 * chance() - 1))

    def _take(self, answer: Answer) -> None:
        self._failures = 0
        least, most = self._source.refresh
        ttl = _NO_TTL if answer.ttl is None else answer.ttl
        holds = min(max(ttl, least), most) if answer.listed else least
        self.asks_at = asyncio.get_running_loop().time() + holds
        was_empty, self._was_empty = self._was_empty, not answer.listed
        if answer.listed or was_empty:
            self._listed = _merged(self._listed or {}, answer.listed)
            self._expires_at = self.asks_at
            self._settle()
            self._roster.set_listed(self._listed.values())
        else:
            self._settle()
            unconfirmed = LookupError("the list is empty, which is to be confirmed")
            self._roster.note_failed_query(unconfirmed)


def _merged(
    before: dict[Endpoint, Listed], listed: Sequence[Listed]
) -> dict[Endpoint, Listed]:
    """Return the new list without duplicates: kept endpoints first, in order."""
    found: dict[Endpoint, Listed] = {}
    # One that is listed twice serves as early as it may.
    for each in sorted(listed, key=lambda one: (one.rank, one.is_reserve)):
        found.setdefault(each.endpoint, each)
    stay = [endpoint for endpoint in before if endpoint in found]
    new = [each.endpoint for each in listed if each.endpoint not in before]
    return {endpoint: found[endpoint] for endpoint in (*stay, *new)}
