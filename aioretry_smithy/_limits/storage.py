"""Access to a shared storage that may be unreachable; queries take turns."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import Any, Protocol, TypeVar

from .._clock import loop_time
from .._errors import bad_argument
from .._policies.queues import WaitQueue
from .rate_limit import Admission

_logger = logging.getLogger("aioretry_smithy")

T = TypeVar("T")

PATIENCE = 1.0
"""Seconds that an answer may take; after that the storage is away."""

PAUSE = 1.0
"""Seconds between two looks at a storage that is away."""

_WARNING_INTERVAL = 60.0

_AT_ONCE = 32
"""Questions under way at once: clients have a hundred connections, or fewer."""


async def cancellable(answer: Awaitable[T]) -> T:
    """Await an answer; be cancelled even if the library swallows a cancellation.

    Before Python 3.12 :func:`asyncio.wait_for` does, with which redis-py sends.
    """
    # Python 3.11 shows a tracer nothing that follows an await that was cancelled.
    return _checked(_cancellations(), await answer)


def _checked(before: int, answered: T) -> T:
    if _cancellations() > before:
        raise asyncio.CancelledError
    return answered


def _cancellations() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


class StorageProbe:
    """Asks a storage, and notes whether it is away.

    A question is asked in a task of its own, which goes on for its second though the
    call that asked gives up: only silence says that a storage is away. One that fails
    is asked once more, in the same second: storages close connections that were idle.
    Of many questions 32 are under way at once, and the others wait in their second.
    Once a question found no answer, no call waits for the storage. As long as there are
    questions, a task looks once a second whether it is back.

    In another event loop the questions of one that was closed are forgotten.

    Args:
        owner: Who uses the storage, for the warning.
        consequence: What happens while it is away, for the warning.
    """

    is_down: bool
    """Whether the storage did not answer last time."""

    def __init__(self, owner: str, consequence: str) -> None:
        self.is_down = False
        self._owner, self._consequence = owner, consequence
        self._loop: asyncio.AbstractEventLoop | None = None
        self._probe_at = self._warn_at = -math.inf
        # Calls wait for the answers to the questions, and for nothing else.
        self._questions: set[asyncio.Task[object]] = set()
        self._tasks: set[asyncio.Task[object]] = set()
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def ask(self, question: Callable[[], Awaitable[T]]) -> asyncio.Task[T | None]:
        """Ask in a task, which ends at the latest when the storage is found away."""
        return self._begin(self._questions, self._ask(question))

    async def answer(
        self, asked: asyncio.Task[T | None], deadline: float = math.inf
    ) -> T | None:
        """Return the answer; None without an answer before the deadline."""
        seconds = deadline - loop_time()
        # A cancellation of the call does not cancel the question.
        await asyncio.wait({asked}, timeout=seconds if seconds < PATIENCE else None)
        return asked.result() if asked.done() and not asked.cancelled() else None

    def probe(self, question: Callable[[], Awaitable[object]]) -> None:
        """Ask in a task whether the storage is back, once a second."""
        self._enter_loop()
        now = loop_time()
        if now >= self._probe_at:
            self._probe_at = now + PAUSE
            _ = self._begin(self._tasks, self._ask(question, is_probe=True))

    def send(self, question: Callable[[], Awaitable[object]]) -> None:
        """Ask in a task of its own; while the storage is away, look for it."""
        if self.is_down:
            self.probe(question)
        else:
            _ = self._begin(self._tasks, self._ask(question))

    async def end(self) -> None:
        """Stop the probe."""
        tasks = [*self._tasks, *self._questions]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def mark_up(self) -> None:
        """Note that the storage is back."""
        self.is_down = False

    def mark_down(self, cause: Exception) -> None:
        """Note that the storage is away; warn of it once a minute."""
        self._enter_loop()
        now = loop_time()
        self.is_down = True
        self._probe_at = now + PAUSE
        for asked in self._questions - {asyncio.current_task()}:
            asked.cancel()
        if now >= self._warn_at:
            self._warn_at = now + _WARNING_INTERVAL
            # Without the traceback, which is long and all of it the library's.
            what = "%s: no answer from the storage, so %s: %r"
            _logger.warning(what, self._owner, self._consequence, cause)

    async def _ask(
        self, question: Callable[[], Awaitable[T]], *, is_probe: bool = False
    ) -> T | None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(PATIENCE), self._turns:
                try:
                    answer = await cancellable(question())
                except Exception:
                    if is_probe:
                        raise
                    # Its connection may have been closed while nobody asked.
                    answer = await cancellable(question())
        except asyncio.CancelledError:
            if _cancellations():
                raise
            self.mark_down(ConnectionError("the query was cancelled"))
            return None
        except Exception as cause:
            # In a closed loop a question that ends cannot wake one that waits its turn.
            if not loop.is_closed():
                self.mark_down(cause)
            return None
        if is_probe:
            self.mark_up()
        return answer

    def _begin(
        self, tasks: set[asyncio.Task[object]], asking: Coroutine[object, object, T]
    ) -> asyncio.Task[T]:
        self._enter_loop()
        # It belongs to no call, so it does not take over the context.
        task = asyncio.get_running_loop().create_task(asking, context=Context())
        # The loop itself does not keep it alive.
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    def _enter_loop(self) -> None:
        """Forget the questions of a loop that was closed: its tasks go on no more."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._probe_at = loop, -math.inf
            self._turns = asyncio.Semaphore(_AT_ONCE)
            # Its clock may be behind.
            self._warn_at = min(self._warn_at, loop.time() + _WARNING_INTERVAL)
            for tasks in (self._questions, self._tasks):
                tasks -= {each for each in tasks if each.get_loop().is_closed()}


class RedisClient(Protocol):
    """The part that is used of ``redis.asyncio.Redis``, or of a client like it."""

    def register_script(self, script: str, /) -> Any:
        """Return a function that runs a script, given its keys and arguments."""

    def publish(self, channel: str, message: str, /) -> Any:
        """Send a message to all that have subscribed to a channel."""

    def pubsub(self) -> Any:
        """Return an object that subscribes to channels."""


def check_client(redis: object, name: str) -> None:
    """Refuse a client that lacks the method, or a class in place of an instance.

    Raises:
        ValueError: *redis* is no client.
    """
    if getattr(redis, name, None) is None or isinstance(redis, type):
        raise no_client(redis)


def no_client(redis: object) -> ValueError:
    """Make the error for an object that is no asynchronous Redis client."""
    # Not its repr, which may hold a password.
    return bad_argument("redis", type(redis), "a redis.asyncio.Redis")


class SharedRate(Protocol):
    """A rate that a storage keeps."""

    async def take(self, key: str, cost: int = 1) -> float:
        """Take a turn; return 0.0, or the seconds until there may be one."""

    async def probe(self, key: str) -> None:
        """Send a query to the storage that changes no state."""


class Turns:
    """The turns that calls of one event loop take under one key, in order of arrival.

    The first of them asks the storage and sleeps until there is more; the others wait
    in line behind it. If it gives up while it asks, the next one takes the question
    over.

    Args:
        rate: Is asked for turns.
        key: The key.
        storage: Says whether the storage is away.
        allow: Whether calls go through while it is.
    """

    def __init__(
        self, rate: SharedRate, key: str, storage: StorageProbe, *, allow: bool
    ) -> None:
        self._take = partial(rate.take, key)
        self._probe = partial(rate.probe, key)
        self._storage, self._allow = storage, allow
        self._queue: WaitQueue[bool] = WaitQueue()
        self._is_asked = False
        self._asked: asyncio.Task[float | None] | None = None
        self._asked_cost = 1
        # Until when the first one sleeps, or has slept.
        self._closed_until = -math.inf
        # What the storage refused last, and until when; a cheaper turn may come sooner.
        self._refused_cost, self._refused_until = 1, -math.inf

    def __len__(self) -> int:
        return len(self._queue) + self._is_asked

    async def turn(self, latest: float, deadline: float, cost: int = 1) -> Admission:
        """Wait for a turn that comes by *latest*, and before the deadline."""
        started = loop_time()
        is_given = await self._is_given(started, latest, deadline, cost)
        now = loop_time()
        if is_given:
            # The time of a question is no wait for a turn.
            has_waited = self._closed_until > started
            return Admission(
                is_given=True, seconds=now - started if has_waited else 0.0
            )
        is_down = self._storage.is_down
        seconds = PAUSE if is_down else max(0.0, self._opens(cost) - now)
        return Admission(is_given=False, seconds=seconds)

    async def _is_given(
        self, started: float, latest: float, deadline: float, cost: int
    ) -> bool:
        if self._storage.is_down:
            return self._unasked()
        if self._is_asked:
            if _is_late(self._opens(cost), latest, deadline):
                return False
            # Until those before it have asked; that is no wait for a turn either.
            until = min(max(latest, started + PATIENCE), deadline)
            if not await self._queue.wait(until, self._pass_on):
                return False
        self._is_asked = True
        try:
            return await self._ask(latest, deadline, cost)
        finally:
            self._pass_on()

    async def _ask(self, latest: float, deadline: float, cost: int) -> bool:
        while not _is_late(opens := self._opens(cost), latest, deadline):
            self._closed_until = opens
            # Those in line have no turn before the first one.
            self._queue.expire(opens)
            await asyncio.sleep(opens - loop_time())
            if self._storage.is_down:
                return self._unasked()
            if self._asked is None or self._asked.done():
                self._asked = self._storage.ask(partial(self._take, cost))
                self._asked_cost = cost
            seconds = await self._storage.answer(self._asked, deadline)
            if seconds is None:
                return self._storage.is_down and self._allow and loop_time() < deadline
            self._asked = None
            if seconds:
                self._refused_cost = self._asked_cost
                self._refused_until = loop_time() + seconds
            # The question of one that gave up may have been for less.
            elif self._asked_cost >= cost:
                return True
        return False

    def _opens(self, cost: int) -> float:
        """Return a time before which there is no turn for a call of that cost."""
        refused = self._refused_until if cost >= self._refused_cost else -math.inf
        return max(self._closed_until, refused)

    def _unasked(self) -> bool:
        self._storage.probe(self._probe)
        return self._allow

    def _pass_on(self, given: bool = True) -> None:
        """Let the next in line ask."""
        # The first one may have given up.
        self._closed_until = min(self._closed_until, loop_time())
        self._is_asked = self._queue.serve(lambda: True)


def _is_late(turn: float, latest: float, deadline: float) -> bool:
    return turn > latest or max(turn, loop_time()) >= deadline
