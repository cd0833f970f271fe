"""Let many processes share a rate, in a storage of the library ``limits``.

Needs the extra ``limits``.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import re
import time
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, cast
from weakref import WeakKeyDictionary

from . import _checks as check
from ._clock import NEAR, VirtualClock, loop_time
from ._errors import bad_argument, is_plain_function, missing_extra, nearest
from ._facade import publish

try:
    import limits
except ModuleNotFoundError as _cause:
    raise missing_extra("limits", _cause) from _cause

from limits.aio import strategies
from limits.aio.storage import (
    MemoryStorage,
    MovingWindowSupport,
    SlidingWindowCounterSupport,
    Storage,
)
from limits.errors import ConfigurationError
from limits.storage import storage_from_string

from ._limits.rate_limit import Admission, RateLimit, RateLimitError, cost_of
from ._limits.storage import StorageProbe, Turns
from ._text.printable import encodable, name_of
from ._values import BoundedMap

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import aiohttp

    from ._context.context import ClientRequestContext
    from ._limits.rate_limit import SharedTurn
    from ._request.request import HttpRequest

    Kept: TypeAlias = WeakKeyDictionary[Storage, dict[str, Any]]
    Options: TypeAlias = dict[str, float | str | bool]

__all__ = ["SharedRateLimit"]

_STORAGE: Final = (
    "an asynchronous storage, or the URI of one, such as async+redis://localhost"
)
_OPTION: Final = "an option of the storage"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*(?=://)", re.ASCII | re.IGNORECASE)

_OF_CLIENTS: Final = frozenset({"host"})
"""Options of clients of storages that look like a misspelt argument of ours."""


def storage_of(storage: object, options: Options, own: Collection[str]) -> Storage:
    """Return a storage, or make the one that a URI names.

    Args:
        storage: The storage, or the URI.
        options: What the storage that the URI names is made with.
        own: The names of the arguments beside them, one of which may be misspelt.

    Raises:
        ValueError: It is neither, or an option is misspelt.
    """
    if isinstance(storage, Storage):
        if options:
            names = ", ".join(options)
            raise bad_argument("storage_options", names, "none with a storage")
        return storage
    if isinstance(storage, str) and storage.startswith("async+"):
        made = _made(storage, options)
        if made is not None:
            _refuse_misspelt(made, options, own)
            return made
    # Not by way of the error, which shows the whole URI, or a part of it.
    raise bad_argument("storage", _shown(storage), _STORAGE)


def _made(uri: str, options: Options) -> Storage | None:
    """Make the storage that a URI names; return None for an unreadable URI."""
    try:
        return cast("Storage", storage_from_string(uri, **options))
    except ValueError:
        return None
    except ConfigurationError as error:
        if uri.removeprefix("async+") not in str(error):
            raise
        return None


def _refuse_misspelt(storage: Storage, options: Options, own: Collection[str]) -> None:
    """Refuse an option that looks like a misspelt argument of ours, or is ignored."""
    known = inspect.signature(type(storage)).parameters
    # Memory takes any, and does nothing with it.
    is_memory = isinstance(storage, MemoryStorage)
    for name in options:
        meant = nearest(name, own)
        looks_like_ours = name not in _OF_CLIENTS and meant != ""
        if name not in known and (is_memory or looks_like_ours):
            # Without the value, which may be a secret.
            raise bad_argument("storage_options", name, f"{_OPTION}{meant}")


def _shown(storage: object) -> object:
    """Return what is no secret of a URI, or of what was given in place of one."""
    scheme = _SCHEME.match(storage) if isinstance(storage, str) else None
    if scheme is not None:
        return scheme[0]
    return None if storage is None else type(storage)


_virtual: WeakKeyDictionary[asyncio.AbstractEventLoop, Kept] = WeakKeyDictionary()
"""What storages in memory keep in virtual time, where each loop begins anew."""


def _is_in_memory(storage: Storage, method: str) -> bool:
    """Say whether a storage keeps rates in memory, by this process's clock.

    A class that has the method for it of its own has no part in that.
    """
    if not isinstance(storage, MemoryStorage):
        return False
    # The library wraps the methods of each class again.
    given, own = (
        inspect.unwrap(getattr(kind, method)) for kind in (type(storage), MemoryStorage)
    )
    return given is own


SOON = 0.001
"""Seconds to wait at least: a storage does not know its windows exactly."""


class _Stored(ABC):
    """A rate that a storage keeps for any number of keys.

    In virtual time memory goes by the clock of the event loop.

    Args:
        storage: The storage.
        item: The rate.
        limiter: Asks the storage.
    """

    _method: ClassVar[str]
    """The name of the method of storages that takes a turn."""

    def __init__(
        self,
        storage: Storage,
        item: limits.RateLimitItem,
        limiter: strategies.RateLimiter,
    ) -> None:
        self._storage = storage
        self._item = item
        self._limiter = limiter
        self._is_in_memory = _is_in_memory(storage, self._method)

    async def take(self, key: str, cost: int = 1) -> float:
        """Take a turn of that *cost*, which is not above the limit.

        Returns:
            0.0, or the seconds until there may be one, if nobody else takes any.
        """
        loop = asyncio.get_running_loop()
        if self._is_in_memory and isinstance(loop, VirtualClock):
            kept = _virtual.setdefault(loop, WeakKeyDictionary())
            known = kept.setdefault(self._storage, {})
            name = f"{self._method}/{self._item.key_for(key)}"
            return self._take_virtual(known, name, cost, loop_time())
        if await self._limiter.hit(self._item, key, cost=cost):
            return 0.0
        return await self._seconds_until_turn(key, cost)

    async def probe(self, key: str) -> None:
        """Send a query to the storage that changes no state."""
        await self._limiter.test(self._item, key)

    @abstractmethod
    def _take_virtual(
        self, known: dict[str, Any], name: str, cost: int, now: float
    ) -> float:
        """Do :meth:`take` with what is known by name in virtual time."""

    @abstractmethod
    async def _seconds_until_turn(self, key: str, cost: int) -> float:
        """Return the seconds until there may be a turn."""


class StoredWindow(_Stored):
    """A moving window that a storage keeps: in no stretch of it are there more turns.

    Each turn costs 1.

    Args:
        storage: The storage, which has moving windows.
        item: The rate.
    """

    _method = "acquire_entry"

    def __init__(self, storage: Storage, item: limits.RateLimitItem) -> None:
        super().__init__(storage, item, strategies.MovingWindowRateLimiter(storage))

    def _take_virtual(
        self, known: dict[str, Any], name: str, cost: int, now: float
    ) -> float:
        taken: deque[float] = known.setdefault(name, deque())
        length = self._item.get_expiry()
        while taken and taken[0] + length <= now + NEAR:
            taken.popleft()
        if len(taken) >= self._item.amount:
            return taken[0] + length - now
        taken.append(now)
        return 0.0

    async def _seconds_until_turn(self, key: str, cost: int) -> float:
        reset, remaining = await self._limiter.get_window_stats(self._item, key)
        # One was forgotten in between.
        if remaining > 0:
            return SOON
        return min(max(reset - time.time(), SOON), self._item.get_expiry())


class StoredCounter(_Stored):
    """A rate that a storage keeps in two numbers for each key, whatever turns cost.

    That is the sliding window counter: what was spent in the window before weighs less
    and less. A moving window would have an entry for each unit.

    Args:
        storage: The storage.
        item: The rate.

    Raises:
        ValueError: The storage has no such counter.
    """

    _method = "acquire_sliding_window_entry"

    def __init__(self, storage: Storage, item: limits.RateLimitItem) -> None:
        if not isinstance(storage, SlidingWindowCounterSupport):
            expected = "one with a sliding window counter"
            expected += ", or a moving window where each request costs 1"
            raise bad_argument("storage", type(storage), expected)
        limiter = strategies.SlidingWindowCounterRateLimiter(storage)
        super().__init__(storage, item, limiter)
        self._counters = storage

    def _take_virtual(
        self, known: dict[str, Any], name: str, cost: int, now: float
    ) -> float:
        counter: Counter = known.setdefault(name, Counter())
        return counter.take(self._item, cost, now)

    async def _seconds_until_turn(self, key: str, cost: int) -> float:
        item, length = self._item, self._item.get_expiry()
        (
            before,
            before_left,
            present,
            present_left,
        ) = await self._counters.get_sliding_window(item.key_for(key), length)
        # The storage keeps a window for one more.
        left = max(0.0, present_left - length)
        counts = before, before_left, present, left
        return seconds_until(item.amount - cost, length, *counts)


def seconds_until(
    most: int,
    length: int,
    before: int,
    before_left: float,
    present: int,
    present_left: float,
) -> float:
    """Return the seconds until a counter is at *most* so high, if nothing is added.

    Args:
        most: What may have been spent.
        length: The seconds of a window.
        before: What was spent in the window before the present one.
        before_left: The seconds for which that still counts, less and less.
        present: What was spent in the present window.
        present_left: The seconds until it is over.
    """
    if present <= most:
        spent, counts_for, later = before, before_left, 0.0
        most -= present
    else:
        spent, counts_for, later = present, float(length), present_left
    # The counter rounds down.
    enough = (most + 1) * length / spent if spent else counts_for
    return later + max(0.0, counts_for - enough) + SOON


@dataclass(slots=True)
class Counter:
    """A sliding window counter, for virtual time."""

    number: int = 0
    """The number of the present window."""

    present: int = 0
    """Tokens spent in the present window."""

    before: int = 0
    """What was spent in the window before."""

    def take(self, item: limits.RateLimitItem, cost: int, now: float) -> float:
        """Take a turn; return 0.0, or the seconds until there may be one."""
        length = item.get_expiry()
        number = math.floor((now + NEAR) / length)
        if number != self.number:
            self.before = self.present if number == self.number + 1 else 0
            self.number, self.present = number, 0
        left = max(0.0, (number + 1) * length - now)
        if math.floor(self.before * left / length) + self.present + cost <= item.amount:
            self.present += cost
            return 0.0
        counts = self.before, left, self.present, left
        return seconds_until(item.amount - cost, length, *counts)


_CONSEQUENCES = {"allow": "requests go through", "refuse": "requests are refused"}

_OWN: Final = "storage", "rate", "key", "cost", "actual", "on_storage_error"
_NO_REFUNDS: Final = "no storage takes back what it has counted"


class SharedRateLimit(RateLimit):
    """Limits the rate of the requests of all processes together.

    Processes with the same storage, rate and key share it. It takes the place of a
    :class:`~aioretry_smithy.RateLimit` in a
    :class:`~aioretry_smithy.RateLimitingClient`.

    In no stretch of the given time do more requests go out than the rate says; a whole
    number of them may go out at once. That is the moving window of the library
    ``limits``. A storage without one, such as Memcached, has a sliding window counter,
    which is nearly as exact; with *cost* each storage counts so.

    Within a process requests take their turns in the order of arrival; among processes,
    in the order of their questions to the storage. Of each key one request at a time
    asks, and sleeps until it may go out.

    A storage that does not answer within a second is away, even if the calls that asked
    have given up before. No call waits for it then: a task looks once a second whether
    it is back, and a warning is logged once a minute.

    The limit may serve many clients and tasks of one event loop, but not threads. The
    windows use the wall clock, so the clocks of the machines should agree; in virtual
    time those of ``async+memory://`` use the clock of the event loop.

    Args:
        storage: A URI such as ``async+redis://localhost:6379`` or ``async+memory://``,
            or an asynchronous storage of ``limits``.
        rate: Such as ``100/second`` or ``5 per 2 minutes``, or a ``RateLimitItem``.
        key: What is limited, such as the name of a service; a string that is not empty.
            Or a function of the context and the request that returns one, such as the
            host. A process knows the 1024 keys used last.
        cost: What a request costs of the rate, such as its tokens: a plain function of
            the context and the request that returns a number, finite and >= 0. It is
            rounded up; 0 passes at once. None: each request costs 1. All processes that
            share a limit give it a *cost*, or none of them does.
        on_storage_error: While the storage is away, ``allow`` requests, or ``refuse``
            them with a :class:`~aioretry_smithy.RateLimitError`.
        storage_options: Passed on to the storage that the URI names, such as
            ``implementation="redispy"``.

    Raises:
        ValueError: An argument is not as described; no storage is known for the URI, or
            it cannot read it, or an option looks like an argument that is misspelt.
            Also if *actual* is given: no storage takes back what it has counted.
        limits.errors.ConfigurationError: The library that the storage needs is not
            installed, or one of its own settings is missing.

    >>> from aioretry_smithy.limits import SharedRateLimit
    >>> SharedRateLimit("async+memory://", "100/second", key="orders")
    SharedRateLimit(MemoryStorage, '100/second', key='orders')
    """

    _is_shared = True

    def __init__(
        self,
        storage: Storage | str,
        rate: limits.RateLimitItem | str,
        *,
        key: str | Callable[[ClientRequestContext, HttpRequest], str],
        cost: Callable[[ClientRequestContext, HttpRequest], float] | None = None,
        on_storage_error: Literal["allow", "refuse"] = "allow",
        **storage_options: Any,
    ) -> None:
        if (actual := storage_options.pop("actual", None)) is not None:
            raise bad_argument("actual", actual, f"None; {_NO_REFUNDS}")
        found = storage_of(storage, storage_options, _OWN)
        item = _item_of(rate)
        if not (_is_key(key) or is_plain_function(key)):
            raise bad_argument("key", key, "a str that is not empty, or a function")
        if on_storage_error not in [*_CONSEQUENCES]:
            raise bad_argument("on_storage_error", on_storage_error, "allow or refuse")
        check.function("cost", cost, "the context and the request")
        shown = repr(key) if isinstance(key, str) else name_of(key)
        kind = type(self).__name__
        costs = "" if cost is None else f", cost={name_of(cost)}"
        settings = f"{type(found).__name__}, {str(rate)!r}, key={shown}{costs}"
        self._description = description = f"{kind}({settings})"
        self._key, self._cost, self._most = key, cost, item.amount
        probe = StorageProbe(description, _CONSEQUENCES[on_storage_error])
        has_window = cost is None and isinstance(found, MovingWindowSupport)
        stored = (StoredWindow if has_window else StoredCounter)(found, item)
        allow = on_storage_error == "allow"
        self._new_turns = partial(Turns, stored, storage=probe, allow=allow)
        self._turns: BoundedMap[Turns] = BoundedMap(self._new_turns)
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def pending(self) -> int:
        """How many requests of this process wait for their turn."""
        if self._loop is not None and self._loop.is_closed():
            return 0
        return sum(map(len, self._turns.copy().values()))

    def settle(self, response: aiohttp.ClientResponse, actual: float) -> None:
        """Raise an error: no storage takes back what it has counted.

        Raises:
            ValueError: Always.
        """
        expected = f"a RateLimit of one process; {_NO_REFUNDS}"
        raise bad_argument("limit", self, expected)

    def _shared_turn(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> SharedTurn:
        cost = math.ceil(cost_of(self._cost, ctx, request))
        if cost > self._most:
            raise RateLimitError(self, math.inf, cost=cost, burst=self._most)
        key = self._key_of(ctx, request) if cost else ""
        return partial(self._admit, key, cost)

    async def _admit(
        self, key: str, cost: int, latest: float, deadline: float
    ) -> Admission:
        if not cost:
            return Admission(is_given=True, seconds=0.0)
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Turns, and questions about them, belong to one loop.
            self._loop, self._turns = loop, BoundedMap(self._new_turns)
        return await self._turns.get(key).turn(latest, deadline, cost)

    def _key_of(self, ctx: ClientRequestContext, request: HttpRequest) -> str:
        key = self._key
        if not isinstance(key, str):
            key = key(ctx, request)
            if not _is_key(key):
                raise bad_argument("key", key, "returns a str that is not empty")
        # A key that no storage can encode would look like one that is away.
        return encodable(key)


def _is_key(key: object) -> bool:
    return isinstance(key, str) and key != ""


def _item_of(rate: limits.RateLimitItem | str) -> limits.RateLimitItem:
    items: list[object] = [rate]
    if isinstance(rate, str):
        try:
            items = [*limits.parse_many(rate)]
        except ValueError:
            items = []
    match items:
        case [limits.RateLimitItem(amount=amount) as item] if amount >= 1:
            return item
    raise bad_argument("rate", rate, "one rate of at least 1, such as 100/second")


publish()
