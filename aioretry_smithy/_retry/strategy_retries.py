"""Ask a strategy about the retries of one call; count the uses of its backoff."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Awaitable
from functools import partial
from typing import Any, Final

from .._call.deadline_cut import CUT, until_deadline
from .._call.outcome import RetryStopReason
from .._policies.backoff import Backoff, counts_attempts
from .retries import Retries
from .strategy import (
    Answers,
    RetryAnswer,
    RetryDecision,
    RetryStrategyWithContent,
    decision_of,
    first_answer,
)
from .wait import AT_ONCE, NOT_WANTED, TOO_LATE, Decision, Stop, Wait

_EXHAUSTED: Final = Stop(RetryStopReason.BACKOFF_EXHAUSTED)


class StrategyRetries(Retries):
    """The retries of a strategy: a backoff advances while the strategy returns it."""

    _answer: Backoff
    """The backoff of the last answer."""

    _backoff: Backoff | None
    """The backoff that was asked last."""

    _count: int
    """The number of times that the backoff was used."""

    def begin(self) -> Decision:
        """Return :data:`.AT_ONCE`."""
        self._backoff = None
        return AT_ONCE

    def ask(self) -> Awaitable[Stop | None] | Stop | None:
        """Ask the strategies in order; a returned backoff permits a retry."""
        config: Any = self.config
        cause = self.cause
        if cause is not None and self.was_cut():
            return self.time_out()
        if not config.looks_at_content:
            answer = config.strategy.should_retry(self.attempt, cause)
        else:
            answer = first_answer(self._answers())
        # Most answers are none, or a backoff.
        if answer is None:
            return NOT_WANTED
        if isinstance(answer, Backoff):
            self._answer = answer
            return None
        if isinstance(answer, Awaitable):
            return self._answered(answer)
        return self._take(answer)

    async def _answered(self, answering: Awaitable[RetryAnswer]) -> Stop | None:
        """Take the answer of a strategy that takes its time."""
        cause = self.cause
        answer = await until_deadline(self.ctx, answering)
        if answer is CUT:
            return TOO_LATE
        if self.cause is cause:
            return self._take(answer)
        # A body failed that was looked at, which is another question.
        stop = self.ask()
        return stop if stop is None or isinstance(stop, Stop) else await stop

    def _take(self, answer: RetryAnswer) -> Stop | None:
        """Keep the backoff of an answer; without a backoff the attempts end."""
        backoff = decision_of(self.config.strategy, answer).backoff
        if backoff is None:
            return NOT_WANTED
        self._answer = backoff
        return None

    def _answers(self) -> Answers:
        for strategy in self.config.strategies:
            if isinstance(strategy, RetryStrategyWithContent):
                yield strategy, self._ask_with_content(strategy)
            else:
                yield strategy, strategy.should_retry(self.attempt, self.cause)

    async def _ask_with_content(
        self, strategy: RetryStrategyWithContent
    ) -> RetryAnswer:
        cause, content = self.cause, None
        if strategy._looks_at(self.attempt):
            look = partial(self.adapter.content, limit=strategy.max_content_length)
            content = await self.read(look)
        if self.cause is not cause:
            return RetryDecision.no_retry()
        answer = strategy.should_retry(self.attempt, cause, content)
        return await answer if isinstance(answer, Awaitable) else answer

    def delay(self) -> Decision:
        """Return the next delay of the backoff; a new backoff object counts from 1."""
        backoff = self._answer
        if backoff is not self._backoff:
            last, self._backoff = self._backoff, backoff
            self._count = 0
            if last is not None and backoff == last and counts_attempts(backoff):
                kept = weakref.ref(last)
                del last
                # Two rules may have equal backoffs. One that nobody keeps is made anew.
                if kept() is None:
                    _warn_about_equal_backoff(backoff)
        self._count += 1
        delay = backoff.next_delay(self._count)
        return _EXHAUSTED if delay is None else Wait(delay, "backoff")


def _warn_about_equal_backoff(backoff: Backoff) -> None:
    # Python's own filter keeps this to once for this line and text.
    warnings.warn(
        f"the retry strategy returned a new {backoff!r} that equals the last one; its"
        " count starts again each time, so each delay is the first one. Make it once"
        " and keep it.",
        RuntimeWarning,
        stacklevel=2,
    )
