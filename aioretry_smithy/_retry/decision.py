"""Decide to retry, not to retry, or to ask the next strategy."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from .._backoff.backoff import Backoff
from .._errors import bad_argument
from .._frozen import extensible


@extensible
@dataclass(frozen=True, slots=True)
class RetryDecision:
    """The answer of a strategy: retry, no retry, or next.

    A strategy may also return a bare :class:`Backoff`, which means :meth:`retry`, or
    None, which means :meth:`next`. So you need a decision only to stop without asking
    the next strategy of a chain. Make it by these three methods. After Armeria's
    ``RetryDecision``.

    >>> class NeverTwicePaid(RetryStrategy):
    ...     def should_retry(self, ctx, cause):
    ...         if ctx.request.url.path == "/payments":
    ...             return RetryDecision.no_retry()
    ...         return RetryDecision.next()
    >>> strategy = NeverTwicePaid() | RetryStrategy.failsafe()
    """

    backoff: Backoff | None = None
    """How to wait for the next attempt; None unless this is :meth:`retry`."""

    is_next: bool = False
    """Whether the next strategy of a chain is to be asked."""

    def __post_init__(self) -> None:
        backoff: object = self.backoff
        is_next: object = self.is_next
        if not (backoff is None or isinstance(backoff, Backoff)):
            raise bad_argument("backoff", backoff, "a Backoff or None")
        if not isinstance(is_next, bool) or (is_next and backoff is not None):
            expected = "True or False, and False beside a backoff"
            raise bad_argument("is_next", is_next, expected)

    @staticmethod
    def retry(backoff: Backoff) -> RetryDecision:
        """Decide to make another attempt.

        Args:
            backoff: How to wait for it; keep it and return the same object each time.

        >>> RetryDecision.retry(Backoff.fixed(0.5))
        RetryDecision.retry(Backoff.fixed(0.5))
        """
        if not isinstance(backoff, Backoff):
            raise bad_argument("backoff", backoff, "a Backoff")
        return RetryDecision(backoff)

    @staticmethod
    def no_retry() -> RetryDecision:
        """Decide to stop with this outcome; strategies behind this one are not asked.

        >>> RetryDecision.no_retry()
        RetryDecision.no_retry()
        """
        return _NO_RETRY

    @staticmethod
    def next() -> RetryDecision:
        """Leave it to the next strategy of a chain; at its end this is a stop.

        >>> RetryDecision.next()
        RetryDecision.next()
        """
        return _NEXT

    @staticmethod
    def of(answer: object) -> RetryDecision:
        """Return the decision for an answer of a strategy.

        Args:
            answer: A backoff means :meth:`retry`, None means :meth:`next`, a decision
                is returned as it is.

        Raises:
            ValueError: *answer* is none of these.

        >>> RetryDecision.of(None)
        RetryDecision.next()
        >>> RetryDecision.of(0.5)
        Traceback (most recent call last):
            ...
        ValueError: should_retry: 0.5 (expected: a Backoff, a RetryDecision or None)
        """
        if answer is None:
            return _NEXT
        if isinstance(answer, Backoff):
            return RetryDecision(answer)
        if isinstance(answer, RetryDecision):
            return answer
        expected = "a Backoff, a RetryDecision or None"
        raise bad_argument("should_retry", answer, expected)

    def __repr__(self) -> str:
        if self.backoff is not None:
            return f"RetryDecision.retry({self.backoff!r})"
        return f"RetryDecision.{'next' if self.is_next else 'no_retry'}()"


_NO_RETRY = RetryDecision()
_NEXT = RetryDecision(is_next=True)

RetryAnswer: TypeAlias = Backoff | RetryDecision | None
"""The answer of ``should_retry``, plain or awaited."""


def first_answer(
    answers: Iterator[RetryAnswer | Awaitable[RetryAnswer]],
) -> RetryAnswer | Awaitable[RetryAnswer]:
    """Return the first answer that is not "next"; None if all are.

    It takes no further answers after that one. If it meets an awaitable answer, it
    returns an awaitable.
    """
    for answer in answers:
        if isinstance(answer, Awaitable):
            return _first_awaited(answer, answers)
        if not RetryDecision.of(answer).is_next:
            return answer
    return None


async def _first_awaited(
    pending: Awaitable[RetryAnswer],
    rest: Iterator[RetryAnswer | Awaitable[RetryAnswer]],
) -> RetryAnswer:
    for given in chain((pending,), rest):
        answer = await given if isinstance(given, Awaitable) else given
        if not RetryDecision.of(answer).is_next:
            return answer
    return None
