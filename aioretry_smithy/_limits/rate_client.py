"""Let only so many requests go out in a time."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from .._context.client import DecoratingClient, HttpClient
from .._dry_run import DryRun
from .._errors import bad_argument
from .._request.keys import OneForAll, PerKey, service_key
from .dry_rate_hooks import DryRateHooks
from .queued import check_timeout
from .rate_gate import RateGate, gate_of
from .rate_hooks import RateHooks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .._context.client import Decorator
    from .rate_limit import RateLimit

    RateGates: TypeAlias = OneForAll[RateGate] | PerKey[RateGate]
    RateLimits: TypeAlias = RateLimit | Sequence[RateLimit]
    RateLimitFactory: TypeAlias = Callable[[str], RateLimits]


class RateLimitingClient(DecoratingClient[HttpClient]):
    """Lets each request wait for its turn at a rate, first come, first served.

    Inside a retrying client, as usual, each attempt waits for a turn of its own. The
    wait is the ``delay`` of the attempt before, or of the call, with ``"rate_limit"``
    as its ``delay_source``; the attempt and its timeout begin after it. A request whose
    turn comes too late raises a :class:`RateLimitError` at once.

    Of several limits, such as requests a minute and tokens a minute, a request takes a
    turn at each, or at none. It stands in all their lines at once, so that one which
    waits for requests also holds up those behind it that need few tokens.

    >>> decorator = RateLimitingClient.new_decorator(RateLimit(50))
    """

    _serves = "sessions"
    _hooks: RateHooks

    def __init__(
        self,
        delegate: HttpClient,
        gates: RateGates,
        timeout: float | None,
        dry_run: DryRun | None,
    ) -> None:
        super().__init__(delegate)
        if dry_run is None:
            self._hooks = RateHooks(gates, timeout)
        else:
            self._hooks = DryRateHooks(gates, timeout, dry_run=dry_run)

    @classmethod
    def new_decorator(
        cls,
        limit: RateLimits,
        *,
        timeout: float | None = None,
        enforce: bool = True,
    ) -> Decorator:
        """Return a decorator with one rate, or one list of rates, for all requests.

        Args:
            limit: The rate; or a list of rates, each of which is there once, and at
                most one of them a :class:`~aioretry_smithy.limits.SharedRateLimit`,
                which is asked last.
            timeout: Longest wait of a request in seconds, finite and >= 0; its deadline
                may end it sooner. None: only the deadline ends it.
            enforce: False: count, decide and log, but let no request wait, and refuse
                none.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> decorator = RateLimitingClient.new_decorator(
        ...     [RateLimit(500, per=60.0), RateLimit(20, burst=5)]
        ... )
        """
        gate = gate_of("limit", limit)
        return cls._decorator(OneForAll("all", gate), timeout, enforce, repr(gate))

    @classmethod
    def new_per_host_decorator(
        cls,
        factory: RateLimitFactory,
        *,
        timeout: float | None = None,
        enforce: bool = True,
    ) -> Decorator:
        """Return a decorator with a rate, or a list of rates, for each host and port.

        All sessions built with the decorator share the rates. Those of the 1024 most
        recently used hosts are kept. A URL without a host goes through unasked.

        Args:
            factory: Makes the limit of a key, such as ``example.com:443``, or the list
                of its limits.
            timeout: As for :meth:`new_decorator`.
            enforce: As for :meth:`new_decorator`.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> decorator = RateLimitingClient.new_per_host_decorator(
        ...     lambda key: RateLimit(100, per=60.0)
        ... )
        """
        if not callable(factory):
            raise bad_argument("factory", factory, "a callable that takes the key")

        def make(key: str) -> RateGate:
            return gate_of(f"factory({key!r})", factory(key))

        gates = PerKey("host", service_key, make, factory)
        return cls._decorator(gates, timeout, enforce, f"rate limit, {gates!r},")

    @classmethod
    def _decorator(
        cls, gates: RateGates, timeout: float | None, enforce: bool, owner: str
    ) -> Decorator:
        check_timeout(timeout)
        if not isinstance(enforce, bool):
            raise bad_argument("enforce", enforce, "True or False")
        dry_run = None if enforce else DryRun(owner)
        return lambda delegate: cls(delegate, gates, timeout, dry_run)

    @property
    def limits(self) -> Mapping[str, RateLimit]:
        """The limits in use by their keys, as of now, for health pages.

        The key of the one given to :meth:`new_decorator` is ``all``. Of several with a
        key, such as ``all``, the others are ``all#2``, ``all#3`` and so on.

        >>> limits = [RateLimit(500, per=60.0), RateLimit(20)]
        >>> decorator = RateLimitingClient.new_decorator(limits)
        >>> dict(decorator(ScriptedTransport([])).limits)
        {'all': RateLimit(500, 60.0), 'all#2': RateLimit(20, 1.0)}
        """
        return MappingProxyType(
            {
                key if number == 1 else f"{key}#{number}": limit
                for key, gate in self._hooks.gates.in_use().items()
                for number, limit in enumerate(gate.limits, 1)
            }
        )

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        hooks = self._hooks
        dry = ", enforce=False" if isinstance(hooks, DryRateHooks) else ""
        given = f"{hooks.gates!r}, timeout={hooks.timeout!r}{dry}"
        return f"{type(self).__name__}({given})"
