"""Note what the parts of a chain were told."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from story_log import told_context, told_error, told_log
from story_text import settled

from aioretry_smithy import (
    CircuitBreakerListener,
    RequestLog,
    RetryBudgetListener,
    RetryLimiter,
)

LOGGER = logging.getLogger("aioretry_smithy")


class Witness(logging.Handler):
    """Notes what the parts of a chain were told, all of them in one order."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.seen: list[Any] = []
        self.logs: list[RequestLog] = []
        self.states: list[Any] = []
        """Functions that tell the state of a part of the chain."""

    def note(self, *things: Any) -> None:
        """Note what happened now."""
        self.seen.append(settled(things))

    def look(self, moment: str) -> None:
        """Look at all logs, as one may at any moment."""
        self.seen.append((moment, [told_log(log) for log in self.logs]))

    def emit(self, record: logging.LogRecord) -> None:
        log = getattr(record, "request_log", None)
        self.note(
            "record",
            record.name,
            record.levelname,
            record.getMessage(),
            log if log is None else (log.attempt, log.root in self.logs),
        )

    @contextlib.contextmanager
    def listening(self, level: int) -> Iterator[None]:
        """Hear what is logged in the block, from a level on."""
        before = LOGGER.level, LOGGER.propagate
        LOGGER.addHandler(self)
        LOGGER.propagate = False
        LOGGER.setLevel(level)
        try:
            yield
        finally:
            LOGGER.removeHandler(self)
            LOGGER.propagate = before[1]
            LOGGER.setLevel(before[0])


class BreakerWitness(CircuitBreakerListener):
    """Notes what circuit breakers tell."""

    def __init__(self, witness: Witness) -> None:
        self._note = witness.note

    def on_state_changed(self, circuit_breaker: Any, state: Any) -> None:
        self._note("breaker", circuit_breaker.name, str(state))

    def on_event_count_updated(self, circuit_breaker: Any, event_count: Any) -> None:
        self._note("breaker", circuit_breaker.name, repr(event_count))

    def on_request_rejected(self, circuit_breaker: Any) -> None:
        self._note("breaker", circuit_breaker.name, "rejected")


class BudgetWitness(RetryBudgetListener):
    """Notes what retry budgets tell."""

    def __init__(self, witness: Witness) -> None:
        self._note = witness.note

    def on_retry_refused(self, budget: Any, ctx: Any) -> None:
        self._note("budget", budget.name, "refused", told_context(ctx))

    def on_tokens_changed(self, budget: Any) -> None:
        self._note("budget", budget.name, budget.tokens, budget.failures_in_a_row)


class LimiterWitness(RetryLimiter):
    """Notes what a limiter is asked and told."""

    def __init__(self, witness: Witness) -> None:
        self._note = witness.note

    def acquire(self, ctx: Any, cause: Any) -> bool:
        self._note("acquire", told_context(ctx), told_error(cause))
        return True

    def release(self, ctx: Any) -> None:
        self._note("release", told_context(ctx))

    def on_retry_end(self, ctx: Any) -> None:
        self._note("retry ended", told_context(ctx))

    def on_success(self, ctx: Any) -> None:
        self._note("success", told_context(ctx))

    def on_failure(self, ctx: Any, cause: Any) -> None:
        self._note("failure", told_context(ctx), told_error(cause))


class AsyncLimiterWitness(LimiterWitness):
    """Does so in coroutines."""

    async def acquire(self, ctx: Any, cause: Any) -> bool:  # type: ignore[override]
        return super().acquire(ctx, cause)

    async def on_success(self, ctx: Any) -> None:  # type: ignore[override]
        super().on_success(ctx)
