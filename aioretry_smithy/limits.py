"""Let many processes share a rate, in a storage of the library ``limits``.

Needs the extra ``limits``.
"""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from . import _checks as check
from ._errors import bad_argument, is_plain_function, missing_extra
from ._facade import publish

try:
    import limits
except ModuleNotFoundError as _cause:
    raise missing_extra("limits", _cause) from _cause

from limits.aio.storage import MovingWindowSupport

from ._limits.rate_gate import RateLimitError
from ._limits.rate_limit import Admission, RateLimit, cost_of
from ._limits.storage import StorageProbe, Turns
from ._limits.stored_rates import StoredCounter, StoredWindow, storage_of
from ._text.printable import encodable, name_of
from ._values import BoundedMap

if TYPE_CHECKING:
    from collections.abc import Callable

    import aiohttp
    from limits.aio.storage import Storage

    from ._context.context import ClientRequestContext
    from ._limits.rate_limit import SharedTurn
    from ._request.request import HttpRequest

__all__ = ["SharedRateLimit"]

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
