"""Decide about retries by the body of the response too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from .._rules.content_conditions import MAX_CONTENT_LENGTH, checked_length
from .decision import RetryAnswer, first_answer
from .strategy import RetryStrategy, StrategyChain, join

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from .._context.context import ClientRequestContext
    from .._rules.content_conditions import Content


class RetryStrategyWithContent(ABC):
    """Decides, after each attempt, by the body of its response too.

    The client waits for the beginning of each body, also of a success, and keeps it in
    memory; the caller still gets the whole body, by ``read()`` and by streaming. If the
    status and the headers are enough, take :class:`RetryStrategy`. After Armeria's
    ``RetryStrategyWithContent``.

    If the body breaks off or stalls meanwhile, the attempt has failed: the strategy
    gets the failure as *cause*.

    ``a | b`` asks *b* when *a* abstains. Either may be a :class:`RetryStrategy`; a body
    is looked at only if a strategy that needs it is asked.

    >>> class RetryWhileLocked(RetryStrategyWithContent):
    ...     backoff = Backoff.of_default()
    ...     max_content_length = 4096
    ...
    ...     def should_retry(self, ctx, cause, content):
    ...         return self.backoff if content and b"locked" in content else None
    """

    max_content_length: int = MAX_CONTENT_LENGTH
    """Bytes of each body to look at, >= 1."""

    @abstractmethod
    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None, content: Content
    ) -> RetryAnswer | Awaitable[RetryAnswer]:
        """Say whether to retry; plain or ``async``.

        Called after every attempt, the successful ones too. Its exceptions go to the
        caller.

        Args:
            ctx: The attempt; ``ctx.log`` has the status and the headers of its response
                and ``ctx.request`` its request.
            cause: The exception of a failed attempt, or None when there is a response.
                Call :func:`is_timeout` and :func:`is_unprocessed` instead of testing
                types.
            content: The first ``max_content_length`` bytes of the body, decoded by its
                ``Content-Encoding`` as in aiohttp; empty without a body. None when
                there is a *cause*. Of a function of :func:`rpc`: what it returned.

        Returns:
            The backoff, the same object each time; None to leave it to the next
            strategy of a chain, or to stop with this outcome if there is none; or a
            :class:`RetryDecision`.
        """

    def _looks_at(self, ctx: ClientRequestContext) -> bool:
        """Say whether the strategy needs the body of a response."""
        return True

    @property
    def _answers_always(self) -> bool:
        """Whether a strategy behind this one is never asked."""
        return False

    def __or__(
        self, other: RetryStrategy | RetryStrategyWithContent
    ) -> RetryStrategyWithContent:
        if not isinstance(other, RetryStrategy | RetryStrategyWithContent):
            return NotImplemented
        return _chain(join(strategies_of(self), strategies_of(other)))

    def __ror__(self, other: RetryStrategy) -> RetryStrategyWithContent:
        if not isinstance(other, RetryStrategy):
            return NotImplemented
        return _chain(join(strategies_of(other), strategies_of(self)))


AnyStrategy: TypeAlias = RetryStrategy | RetryStrategyWithContent
"""A strategy of either kind."""


@dataclass(frozen=True, slots=True)
class StrategyChainWithContent(RetryStrategyWithContent):
    """Strategies that are asked in turn, at least one of which looks at content."""

    members: tuple[AnyStrategy, ...]

    max_content_length: int = field(init=False, repr=False, compare=False)
    """The longest beginning of the body that one of them looks at."""

    def __post_init__(self) -> None:
        lengths = [
            checked_length(member.max_content_length)
            for member in self.members
            if isinstance(member, RetryStrategyWithContent)
        ]
        object.__setattr__(self, "max_content_length", max(lengths))

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None, content: Content
    ) -> RetryAnswer | Awaitable[RetryAnswer]:
        return first_answer(self._answers(ctx, cause, content))

    def _answers(
        self, ctx: ClientRequestContext, cause: Exception | None, content: Content
    ) -> Iterator[RetryAnswer | Awaitable[RetryAnswer]]:
        for member in self.members:
            if isinstance(member, RetryStrategyWithContent):
                start = content
                if isinstance(content, bytes):
                    start = content[: member.max_content_length]
                yield member.should_retry(ctx, cause, start)
            else:
                yield member.should_retry(ctx, cause)

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.members))


def strategies_of(strategy: AnyStrategy) -> tuple[AnyStrategy, ...]:
    """Return the members of a chain in order, or the one strategy in a tuple.

    None of the members is a chain itself.
    """
    if isinstance(strategy, StrategyChain | StrategyChainWithContent):
        return strategy.members
    return (strategy,)


def _chain(members: tuple[AnyStrategy, ...]) -> RetryStrategyWithContent:
    first = members[0]
    if len(members) == 1 and isinstance(first, RetryStrategyWithContent):
        return first
    return StrategyChainWithContent(members)
