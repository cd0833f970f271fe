"""Ask a storage that many processes share, and that may be away."""

from __future__ import annotations

import asyncio
import logging
import math
from contextvars import Context
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .._clock import loop_time
from .._errors import bad_argument

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

_logger = logging.getLogger("aioretry_smithy")

T = TypeVar("T")

PATIENCE = 1.0
"""Seconds that an answer may take; after that the storage is away."""

PAUSE = 1.0
"""Seconds between two looks at a storage that is away."""

_WARNING_INTERVAL = 60.0


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

    def ask(self, question: Callable[[], Awaitable[T]]) -> asyncio.Task[T | None]:
        """Ask in a task, which ends at the latest when the storage is found away."""
        return self._begin(self._questions, self._ask(question))

    async def answer(
        self, asked: asyncio.Task[T | None], deadline: float = math.inf
    ) -> T | None:
        """Return the answer; None without one, or where it comes after the deadline."""
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
        """Ask nothing any more."""
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
        try:
            async with asyncio.timeout(PATIENCE):
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
            self.mark_down(ConnectionError("the question was cancelled"))
            return None
        except Exception as cause:
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
    """Refuse what has no method of that name, or is a class that has it.

    Raises:
        ValueError: *redis* is no client.
    """
    if getattr(redis, name, None) is None or isinstance(redis, type):
        raise no_client(redis)


def no_client(redis: object) -> ValueError:
    """Make the error for an object that is no asynchronous Redis client."""
    # Not its repr, which may hold a password.
    return bad_argument("redis", type(redis), "a redis.asyncio.Redis")
