"""Let the processes of a service share open circuits."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections import deque
from collections.abc import Callable
from contextvars import Context
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, NamedTuple, Self
from uuid import uuid4
from weakref import WeakKeyDictionary

from .._breaker.breaker import CircuitBreaker, CircuitBreakerListener, next_open_window
from .._breaker.state import CircuitState, EventCount
from .._clock import loop_time
from .._errors import bad_argument, is_plain_function
from .._limits.storage import (
    PATIENCE,
    PAUSE,
    RedisClient,
    StorageProbe,
    cancellable,
    check_client,
    no_client,
)
from .._text.printable import encodable
from .._values import Shared

_QUIET = 30.0
"""Seconds without a message after which the connection is tried."""

_SETTLED = 2.0
"""Seconds in which processes resubscribe after a common loss of connection."""

_REMEMBERED = 1000
"""Number of remembered openings: no circuit follows an opening twice."""

_MOST = 0.5
"""The share of failures above which most requests have failed."""

_REFUSING = CircuitState.OPEN, CircuitState.HALF_OPEN


@dataclass(frozen=True, slots=True)
class _News:
    """The message that a circuit has entered a state."""

    process: str
    name: str
    state: str

    failed: int
    """How many generations of trials have failed there since it was closed."""

    slow: bool
    """Whether the last of them may have taken the server long."""

    opening: str
    """The identifier of the opening."""

    @classmethod
    def read(cls, data: str | bytes) -> _News | None:
        """Read a message; return None for a foreign one, or an answer to a ping."""
        try:
            news = json.loads(data)
            CircuitState(news["state"])
            read = cls(*(news[each.name] for each in fields(cls)))
        except (KeyError, RecursionError, TypeError, ValueError):
            return None
        return read if type(read.failed) is int and read.failed >= 0 else None


class _Round(NamedTuple):
    """The time for which a circuit stays open here, after news or a failure."""

    until: float
    """When this process may try the server."""

    tried_by: str | None
    """The process that runs the trial."""


class SharedCircuitBreakers(Shared, CircuitBreakerListener):
    """Opens the circuits of all processes when one process has found a server down.

    It is a listener of the circuit breakers of one process, and works while its ``async
    with`` block lasts. Circuit breakers of the same name belong together, so name them.

    - A circuit that opens here opens in the other processes, by publish/subscribe in
      Redis, and is published again until received. A process in which most requests of
      the last one to two ``counter_update_interval`` (1 s) have succeeded does not
      follow: the trouble may not be the server's.
    - One process tries the server for all of them: after its open window each waits for
      up to one trial interval more, at random. The first one to try tells the others,
      which then wait for its answer. A success closes the circuit everywhere; after a
      failure all wait again.
    - A ``circuit_open_window`` that is a :class:`.Backoff` grows in all of them
      together, and where a circuit needs several trials, one process makes them.
    - Each process decides by its own circuit breaker. While Redis is away it decides
      alone: nothing waits for Redis, and a warning is logged once a minute.

    A circuit breaker takes part from the first request on that it counts. The object is
    for one event loop, not for threads.

    Args:
        redis: A ``redis.asyncio.Redis``, or a client that is like it.
        channel: The channel of Redis on which processes report; a string that is not
            empty.
        random: Returns numbers in [0, 1), for the wait before a trial.

    Raises:
        ValueError: An argument is not as described.

    >>> from aioretry_smithy.redis import SharedCircuitBreakers
    >>> async def main(redis):
    ...     async with SharedCircuitBreakers(redis) as shared:
    ...         decorator = CircuitBreakerClient.new_per_host_decorator(
    ...             lambda key: CircuitBreaker(key, listeners=[shared])
    ...         )
    """

    def __init__(
        self,
        redis: RedisClient,
        *,
        channel: str = "aioretry_smithy:circuit-breakers",
        random: Callable[[], float] = random.random,
    ) -> None:
        check_client(redis, "pubsub")
        if not hasattr(redis.pubsub(), "__aenter__"):
            raise no_client(redis)
        if channel == "" or not isinstance(channel, str):
            raise bad_argument("channel", channel, "a str that is not empty")
        if not is_plain_function(random):
            raise bad_argument("random", random, "a function that returns a number")
        self._redis, self._random = redis, random
        self._channel = encodable(channel)
        self._storage = StorageProbe(repr(self), "circuits open in each process alone")
        self._id = ""
        self._rounds: WeakKeyDictionary[CircuitBreaker, _Round | None]
        self._rounds = WeakKeyDictionary()
        # Those that have opened, of which nobody may have heard yet, with the news.
        self._unheard: WeakKeyDictionary[CircuitBreaker, _News] = WeakKeyDictionary()
        # The openings that were heard here of late.
        self._heard: deque[str] = deque(maxlen=_REMEMBERED)
        self._listening: asyncio.Task[None] | None = None
        self._telling: asyncio.Task[None] | None = None
        self._subscribed_at = math.inf
        self._is_following = False

    async def __aenter__(self) -> Self:
        """Begin to send and to receive news."""
        if self._is_in_use:
            raise RuntimeError(f"{self!r} is in use")
        # Not before: a process may have forked in between.
        self._id = uuid4().hex
        loop = asyncio.get_running_loop()
        self._telling, self._subscribed_at = None, math.inf
        self._unheard.clear()
        self._listening = loop.create_task(self._listen(), context=Context())
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop sending and receiving news."""
        tasks = [each for each in (self._listening, self._telling) if each is not None]
        self._listening = self._telling = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._storage.end(), return_exceptions=True)

    def on_event_count_updated(
        self, circuit_breaker: CircuitBreaker, event_count: EventCount
    ) -> None:
        """Share a circuit breaker, from its first request on."""
        self._rounds.setdefault(circuit_breaker, None)

    def on_state_changed(
        self, circuit_breaker: CircuitBreaker, state: CircuitState
    ) -> None:
        """Send the change of state to the other processes."""
        self._rounds.setdefault(circuit_breaker, None)
        self._unheard.pop(circuit_breaker, None)
        is_news = not self._is_following and state is not CircuitState.FORCED_OPEN
        if is_news and self._is_in_use:
            own = circuit_breaker._state
            said = circuit_breaker.name, state, own.failed, own.was_slow
            news = _News(self._id, *said, uuid4().hex)
            self._send(news)
            if state is CircuitState.OPEN:
                self._unheard[circuit_breaker] = news
                if self._telling is None:
                    loop = asyncio.get_running_loop()
                    self._telling = loop.create_task(self._tell(), context=Context())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(channel={self._channel!r})"

    @property
    def _is_in_use(self) -> bool:
        """Whether an ``async with`` block of an open event loop is being run."""
        task = self._listening
        return task is not None and not task.get_loop().is_closed()

    def _send(self, news: _News) -> None:
        text = json.dumps(asdict(news))
        self._storage.send(partial(self._redis.publish, self._channel, text))

    async def _tell(self) -> None:
        """Send open circuits to the other processes, again until they have arrived."""
        while self._unheard:
            await asyncio.sleep(PAUSE)
            for breaker, news in [*self._unheard.items()]:
                # One that may be tried by now is no news.
                if breaker.retry_in:
                    self._send(news)
                else:
                    del self._unheard[breaker]
        self._telling = None

    async def _listen(self) -> None:
        while True:
            try:
                async with self._redis.pubsub() as pubsub:
                    async with asyncio.timeout(PATIENCE):
                        await cancellable(pubsub.subscribe(self._channel))
                    self._storage.mark_up()
                    self._subscribed_at = loop_time()
                    await self._hear_all(pubsub)
            except Exception as cause:
                lasted = loop_time() - self._subscribed_at
                self._subscribed_at = math.inf
                # That a connection was closed says nothing of the next one.
                if lasted > PAUSE:
                    continue
                self._storage.mark_down(cause)
            await asyncio.sleep(PAUSE)

    async def _hear_all(self, pubsub: Any) -> None:
        is_tried = False
        while True:
            asked_at = loop_time()
            message = await cancellable(
                pubsub.get_message(ignore_subscribe_messages=False, timeout=_QUIET)
            )
            if message is not None and message.get("type") == "subscribe":
                # A client may make a lost connection anew by itself.
                self._subscribed_at = loop_time()
            elif message is not None:
                self._hear(message["data"])
            # An answer that is ignored comes before its time: redis-py ignores that to
            # a ping where it decodes answers.
            if message is not None or loop_time() - asked_at < _QUIET / 2:
                is_tried = False
            elif is_tried:
                raise ConnectionError("no answer to a ping")
            else:
                is_tried = True
                await cancellable(pubsub.ping())

    def _hear(self, data: str | bytes) -> None:
        news = _News.read(data)
        if news is None:
            return
        known = [breaker for breaker in [*self._rounds] if breaker.name == news.name]
        self._note_heard(known, news.opening)
        if news.opening in self._heard:
            return
        if known:
            self._heard.append(news.opening)
        self._is_following = True
        try:
            for breaker in known:
                self._follow(breaker, news)
        finally:
            self._is_following = False

    def _note_heard(self, breakers: list[CircuitBreaker], opening: str) -> None:
        """Note that a message arrived back here, and hence at all processes."""
        # They may not have subscribed again yet, where all have lost their connections.
        if loop_time() - self._subscribed_at > _SETTLED:
            for breaker in breakers:
                news = self._unheard.get(breaker)
                if news is not None and news.opening == opening:
                    del self._unheard[breaker]

    def _follow(self, breaker: CircuitBreaker, news: _News) -> None:
        """Enter the state that another process has entered, or keep the round."""
        last, now = self._rounds[breaker], loop_time()
        is_open = breaker.state is CircuitState.OPEN
        if news.state == CircuitState.CLOSED:
            self._rounds[breaker] = None
            if breaker.state in _REFUSING:
                breaker.enter_state(CircuitState.CLOSED)
        elif news.state == CircuitState.HALF_OPEN:
            if breaker.state in _REFUSING:
                was_slow = breaker._state.was_slow
                self._begin_round(breaker, now, news.failed, was_slow, news.process)
        elif last is not None and now < last.until and last.tried_by != news.process:
            # The news of that process is older than the round here.
            if is_open:
                was_slow = breaker._state.was_slow
                breaker._enter(CircuitState.OPEN, last.until - now, was_slow=was_slow)
        elif is_open or _is_shaky(breaker):
            self._begin_round(breaker, now, news.failed, news.slow)

    def _begin_round(
        self,
        breaker: CircuitBreaker,
        now: float,
        failed: int,
        was_slow: bool,
        tried_by: str | None = None,
    ) -> None:
        wait = breaker._settings.trial_request_interval * self._random()
        seconds = next_open_window(breaker, failed) + wait
        self._rounds[breaker] = _Round(now + seconds, tried_by)
        if breaker.state is not CircuitState.HALF_OPEN:
            breaker._enter(CircuitState.OPEN, seconds, was_slow=was_slow)


def _is_shaky(breaker: CircuitBreaker) -> bool:
    """Say whether a circuit is closed, though little has succeeded of late."""
    window = breaker._state.window
    if window is None:
        return False
    rate, settings = window.newest(breaker._clock()).failure_rate, breaker._settings
    tolerated = settings.failure_rate_threshold
    if settings.consecutive_failures is not None:
        # What opens it may be a row alone, with any share tolerated.
        tolerated = min(tolerated, _MOST)
    return rate is None or rate > tolerated
