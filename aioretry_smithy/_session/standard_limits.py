"""Make the limits of the standard chain."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .._errors import bad_argument, is_finite, is_plain_function
from .._facade import publish
from .._limits.client import ConcurrencyLimitingClient
from .._limits.concurrency_limit import ConcurrencyLimit, ConcurrencyLimitListener
from .._limits.rate_client import RateLimitingClient
from .._limits.rate_limit import RateLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .._context.client import Decorator
    from .._limits.client import ConcurrencyLimitFactory
    from .._limits.rate_client import RateLimitFactory, RateLimits

Concurrency: TypeAlias = (
    "int | ConcurrencyLimit | ConcurrencyLimitFactory | Literal['aimd']"
)
"""A value of the argument ``concurrency`` of the standard chain."""

Rate: TypeAlias = "RateLimits | RateLimitFactory"
"""A value of the argument ``rate`` of the standard chain."""


class PerHost:
    """Makes the concurrency limit of each host, and shows how in a description.

    Args:
        make: Makes a limit.
        listeners: Hear of each limit.
        settings: The other arguments of *make*.
    """

    def __init__(
        self,
        make: Callable[..., ConcurrencyLimit],
        listeners: Iterable[ConcurrencyLimitListener],
        **settings: float,
    ) -> None:
        self._make = partial(make, listeners=listeners, **settings)
        shown = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        self._shown = f"{make.__qualname__}({shown})"

    def __call__(self, key: str) -> ConcurrencyLimit:
        """Make the limit of a host."""
        return self._make(name=key)

    def __repr__(self) -> str:
        return self._shown


class RatePerHost:
    """Makes the rate limit of each host, and shows how in a description.

    Args:
        requests: How many may go out in a second.
    """

    def __init__(self, requests: float) -> None:
        self._requests = requests

    def __call__(self, key: str) -> RateLimit:
        """Make the limit of a host."""
        return RateLimit(self._requests)

    def __repr__(self) -> str:
        return repr(self(""))


def limit_decorators(
    concurrency: Concurrency | None,
    rate: Rate | None,
    attempt_timeout: float,
    *,
    enforce: bool,
    listeners: Iterable[ConcurrencyLimitListener] = (),
) -> Iterator[Decorator]:
    """Yield the limits of the standard chain, from the inside out.

    A request waits for its turn first: while it has a place it does not wait. The
    *listeners* hear of the concurrency limits that are made here.

    Raises:
        ValueError: *concurrency* or *rate* is nothing to make a limit of.
    """
    if concurrency is not None:
        yield _concurrency(concurrency, attempt_timeout, enforce, listeners)
    if rate is not None:
        yield _rate(rate, enforce)


def _concurrency(
    concurrency: Any,
    attempt_timeout: float,
    enforce: bool,
    listeners: Iterable[ConcurrencyLimitListener],
) -> Decorator:
    if isinstance(concurrency, ConcurrencyLimit):
        return ConcurrencyLimitingClient.new_decorator(concurrency, enforce=enforce)
    per_host = partial(
        ConcurrencyLimitingClient.new_per_host_decorator, enforce=enforce
    )
    if type(concurrency) is int and concurrency >= 1:
        return per_host(PerHost(ConcurrencyLimit.fixed, listeners, limit=concurrency))
    if concurrency == "aimd":
        # A wait uses up the time of the attempt. With a small start and slow answers
        # as drops the limit binds before most requests end in a timeout.
        slow_after = attempt_timeout / 2
        factory = PerHost(
            ConcurrencyLimit.aimd, listeners, initial=4, slow_after=slow_after
        )
        return per_host(factory, timeout=attempt_timeout / 4)
    if is_plain_function(concurrency):
        return per_host(concurrency)
    expected = "an int >= 1, a ConcurrencyLimit, a function of the host, 'aimd' or None"
    raise bad_argument("concurrency", concurrency, expected)


def _rate(rate: Any, enforce: bool) -> Decorator:
    if is_finite(rate) and rate > 0:
        rate = RatePerHost(rate)
    if isinstance(rate, RateLimit | list | tuple):
        return RateLimitingClient.new_decorator(rate, enforce=enforce)
    if is_plain_function(rate):
        return RateLimitingClient.new_per_host_decorator(rate, enforce=enforce)
    expected = (
        "a number > 0, a RateLimit or a list of them, a function of the host, or None"
    )
    raise bad_argument("rate", rate, expected)


# Without the facade, which would do it.
publish()
