"""Let only so many requests be in flight at once."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from .._context.client import DecoratingClient, HttpClient
from .._dry_run import DryRun
from .._errors import bad_argument
from .._request.keys import OneForAll, PerKey, host_key
from .concurrency_limit import ConcurrencyLimit
from .dry_hooks import DryConcurrencyHooks
from .hooks import ConcurrencyHooks
from .queued import check_timeout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .._context.client import Decorator

    ConcurrencyLimitFactory: TypeAlias = Callable[[str], int | ConcurrencyLimit]
    ConcurrencyLimits: TypeAlias = (
        OneForAll[ConcurrencyLimit] | PerKey[ConcurrencyLimit]
    )


class ConcurrencyLimitingClient(DecoratingClient[HttpClient]):
    """Lets requests wait until there is a place for them in flight.

    Inside a retrying client, as usual, each attempt takes a place of its own. It holds
    the place until the body has ended or the response is released; a websocket holds it
    until it is closed. Waiting requests are served in the order in which they came. One
    that gets no place in time, or none in the queue, raises a
    :class:`ConcurrencyLimitError`. After Armeria's class of that name.

    >>> decorator = ConcurrencyLimitingClient.new_decorator(20, max_pending=100)
    """

    _serves = "sessions"
    _hooks: ConcurrencyHooks

    def __init__(
        self,
        delegate: HttpClient,
        limits: ConcurrencyLimits,
        max_pending: int | None,
        timeout: float | None,
        dry_run: DryRun | None,
    ) -> None:
        super().__init__(delegate)
        settings = limits, max_pending, timeout, limits.is_per_server
        if dry_run is None:
            self._hooks = ConcurrencyHooks(*settings)
        else:
            self._hooks = DryConcurrencyHooks(*settings, dry_run=dry_run)

    @classmethod
    def new_decorator(
        cls,
        limit: int | ConcurrencyLimit,
        *,
        max_pending: int | None = None,
        timeout: float | None = 10.0,
        enforce: bool = True,
    ) -> Decorator:
        """Return a decorator with one limit for all requests.

        Args:
            limit: An int >= 1, or a :class:`ConcurrencyLimit`, which may adapt itself.
            max_pending: Requests that may wait at once, an int >= 0; None for any
                number.
            timeout: Longest wait of a request in seconds, finite and >= 0; its deadline
                may end it sooner. None: only the deadline ends it.
            enforce: False: count, decide and log, but let no request wait, and refuse
                none.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> limit = ConcurrencyLimit.aimd()
        >>> decorator = ConcurrencyLimitingClient.new_decorator(limit, timeout=1.0)
        """
        made = _limit_of(limit, None)
        limits = OneForAll(made.name, made)
        dry_run = _dry_run(enforce, f"concurrency limit {made.name!r}")
        return cls._decorator(limits, max_pending, timeout, dry_run)

    @classmethod
    def new_per_host_decorator(
        cls,
        factory: ConcurrencyLimitFactory,
        *,
        max_pending: int | None = None,
        timeout: float | None = 10.0,
        enforce: bool = True,
    ) -> Decorator:
        """Return a decorator with a limit for each host and port.

        All sessions built with the decorator share the limits. The 1024 most recently
        used are kept. A URL without a host goes through unasked.

        Args:
            factory: Makes the limit of a key, such as ``example.com:443``: an int or a
                :class:`ConcurrencyLimit`.
            max_pending: As for :meth:`new_decorator`, of each limit.
            timeout: As for :meth:`new_decorator`.
            enforce: As for :meth:`new_decorator`.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> def limit(key):
        ...     return ConcurrencyLimit.aimd(name=key)
        >>> decorator = ConcurrencyLimitingClient.new_per_host_decorator(limit)
        """
        if not callable(factory):
            raise bad_argument("factory", factory, "a callable that takes the key")

        def make(key: str) -> ConcurrencyLimit:
            return _limit_of(factory(key), key)

        limits = PerKey("host", host_key, make, factory)
        dry_run = _dry_run(enforce, f"concurrency limit ({limits!r})")
        return cls._decorator(limits, max_pending, timeout, dry_run)

    @classmethod
    def _decorator(
        cls,
        limits: ConcurrencyLimits,
        max_pending: int | None,
        timeout: float | None,
        dry_run: DryRun | None,
    ) -> Decorator:
        if max_pending is not None and (
            type(max_pending) is not int or max_pending < 0
        ):
            raise bad_argument("max_pending", max_pending, "an int >= 0, or None")
        check_timeout(timeout)
        return lambda delegate: cls(delegate, limits, max_pending, timeout, dry_run)

    @property
    def limits(self) -> Mapping[str, ConcurrencyLimit]:
        """The limits in use by their keys, as of now, for health pages.

        The key of the one given to :meth:`new_decorator` is its name.

        >>> decorator = ConcurrencyLimitingClient.new_decorator(5)
        >>> limits = decorator(ScriptedTransport([])).limits
        >>> [limit.in_flight for limit in limits.values()]
        [0]
        """
        return MappingProxyType(self._hooks.limits.in_use())

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        hooks = self._hooks
        queue = f"max_pending={hooks.max_pending!r}, timeout={hooks.timeout!r}"
        dry = ", enforce=False" if isinstance(hooks, DryConcurrencyHooks) else ""
        return f"{type(self).__name__}({hooks.limits!r}, {queue}{dry})"


def _limit_of(limit: object, name: str | None) -> ConcurrencyLimit:
    if isinstance(limit, ConcurrencyLimit):
        return limit
    if type(limit) is int and limit >= 1:
        return ConcurrencyLimit.fixed(limit, name=name)
    raise bad_argument("limit", limit, "an int >= 1, or a ConcurrencyLimit")


def _dry_run(enforce: bool, owner: str) -> DryRun | None:
    """Return what says what *owner* would have done, where it is not to act."""
    if not isinstance(enforce, bool):
        raise bad_argument("enforce", enforce, "True or False")
    return None if enforce else DryRun(owner)
