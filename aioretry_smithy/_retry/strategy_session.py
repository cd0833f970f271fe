"""One call whose retries a :class:`RetryStrategy` decides about."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Awaitable
from functools import partial
from typing import Any, cast

from .. import _content
from .backoff import Backoff
from .content_strategy import RetryStrategyWithContent
from .decision import RetryDecision
from .session import RetrySession


class StrategySession(RetrySession):
    """Asks for a backoff, and counts on it for as long as it is the same object."""

    # Written by retries only, so that a call without one need not set them.
    _answer: Backoff | None = None
    _backoff: Backoff | None = None
    _count = 0

    async def ask(self) -> bool:
        """Ask one strategy after the other; a backoff means another attempt."""
        config = self._config
        if config.buffer_response:
            await self._read()
        if self.cause is not None and self._was_cut():
            return False
        strategy: Any
        for strategy in config.strategies:
            answer: object
            if config.looks_at_content and (
                isinstance(strategy, RetryStrategyWithContent)
            ):
                had_response = self.response is not None
                content = await self._look(strategy)
                if had_response and self.response is None:
                    # The attempt has failed after all, which is another question.
                    return await self.ask()
                answer = strategy.should_retry(self.attempt, self.cause, content)
            else:
                answer = strategy.should_retry(self.attempt, self.cause)
            if answer is None:
                continue
            if not isinstance(answer, Backoff):
                if isinstance(answer, Awaitable):
                    answer = await answer
                decision = RetryDecision.of(answer)
                if decision.is_next:
                    continue
                answer = decision.backoff
            self._answer = answer
            return answer is not None
        return False

    async def _look(self, strategy: RetryStrategyWithContent) -> bytes | None:
        if not strategy._looks_at(self.attempt):
            return None
        return await self._read(
            partial(_content.peek, limit=strategy.max_content_length)
        )

    async def next_delay(self) -> float | None:
        """Ask the backoff; one that is not the last one's object counts from 1."""
        backoff = cast("Backoff", self._answer)
        if backoff is not self._backoff:
            last, self._backoff = self._backoff, backoff
            self._count = 0
            if last is not None and backoff == last:
                kept = weakref.ref(last)
                del last
                # Two rules may have equal backoffs. What nobody keeps is made anew.
                if kept() is None:
                    _warn_about_equal_backoff(backoff)
        self._count += 1
        return backoff.next_delay(self._count)


def _warn_about_equal_backoff(backoff: Backoff) -> None:
    # Python's own filter keeps this to once for this line and text.
    warnings.warn(
        f"the retry strategy returned a new {backoff!r} that equals the last one; its"
        " count starts again each time, so it never grows. Make it once and keep it.",
        RuntimeWarning,
        stacklevel=2,
    )
