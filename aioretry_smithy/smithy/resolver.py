"""One strategy for all who ask for the same settings."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from .._shown import shown
from .interfaces import is_smithy_strategy
from .mode import RetryMode, read_mode
from .shared import Shared
from .simple_mode import check_max_attempts

if TYPE_CHECKING:
    from .interfaces import RetryStrategy

RetryStrategyType: TypeAlias = Literal["simple", "standard", "adaptive"]
"""The name of a :class:`RetryMode`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryStrategyOptions:
    """The options from which a :class:`RetryStrategyResolver` makes a strategy.

    Args:
        retry_mode: A :class:`RetryMode`, or its name.
        max_attempts: Attempts of one call, the first one included, >= 1; None for what
            is usual in the mode.

    Raises:
        ValueError: An argument is not as described.

    Source: smithy-python's class of this name.

    >>> RetryStrategyOptions(max_attempts=5)
    RetryStrategyOptions(retry_mode='standard', max_attempts=5)
    """

    retry_mode: RetryStrategyType = "standard"
    """The name of the mode."""

    max_attempts: int | None = None
    """Attempts of one call, the first one included, or None."""

    def __post_init__(self) -> None:
        # A warning comes here, and not again at each use.
        mode = read_mode("retry_mode", self.retry_mode, stacklevel=4)
        object.__setattr__(self, "retry_mode", mode.value)
        if self.max_attempts is not None:
            check_max_attempts(self.max_attempts)


class RetryStrategyResolver(Shared):
    """Makes strategies, the same one for the same settings.

    So clients with the same settings share a quota. It keeps the 128 strategies that
    were asked for last. Threads may share one; a copy of it is the resolver itself.

    Source: smithy-python's class of this name.

    >>> async def resolve():
    ...     resolver = RetryStrategyResolver()
    ...     options = RetryStrategyOptions(max_attempts=5)
    ...     first = await resolver.resolve_retry_strategy(retry_strategy=options)
    ...     again = await resolver.resolve_retry_strategy(retry_strategy=options)
    ...     return first.max_attempts, first is again
    >>> asyncio.run(resolve())
    (5, True)
    """

    __slots__ = ("_lock", "_new_strategy")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._new_strategy = lru_cache(maxsize=128)(_new_strategy)

    async def resolve_retry_strategy(
        self,
        *,
        retry_strategy: RetryStrategy | RetryStrategyOptions | None,
        retry_mode: RetryStrategyType | None = None,
        max_attempts: int | None = None,
    ) -> RetryStrategy:
        """Return the strategy that is given, or the one for the settings.

        Args:
            retry_strategy: A strategy, which is returned as it is, or settings. None:
                the other two arguments are the settings.
            retry_mode: The mode if *retry_strategy* is None; the standard one by
                default.
            max_attempts: The attempts of one call if *retry_strategy* is None.

        Raises:
            TypeError: *retry_strategy* is none of these.
            ValueError: One of the others is not as :class:`RetryStrategyOptions` wants
                it.
        """
        options: object = retry_strategy
        if is_smithy_strategy(options):
            return cast("RetryStrategy", retry_strategy)
        if options is None:
            mode = RetryMode.STANDARD
            if retry_mode is not None:
                mode = read_mode("retry_mode", retry_mode)
            options = RetryStrategyOptions(
                retry_mode=mode.value, max_attempts=max_attempts
            )
        if not isinstance(options, RetryStrategyOptions):
            # In smithy-python's words, which its users may look for.
            expected = "RetryStrategy, RetryStrategyOptions, or None"
            raise TypeError(f"retry_strategy must be {expected}, not {shown(options)}")
        # Two threads that ask at once are to get the same one.
        with self._lock:
            return self._new_strategy(options)


def _new_strategy(options: RetryStrategyOptions) -> RetryStrategy:
    mode = RetryMode(options.retry_mode)
    return mode.new_strategy(max_attempts=options.max_attempts)
