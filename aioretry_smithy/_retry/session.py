"""One call that is being retried: what was tried, and what is to come."""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from .. import _content
from .._body import SpentBodyError, is_spent
from .._causes import drop_frames
from .._errors import ResponseTimeoutError, bad_argument, is_finite
from .._origin import was_sent_before
from .._retry_info import RetryInfo
from .._safety import is_timeout, mark_queued, mark_seen, peel, was_queued
from .._time_limits import IN_BODY, passed_limit, time_left
from .hints import retry_after
from .limiter_calls import acquired, ended, released
from .stop_reason import RetryStopReason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp

    from .._context import ClientRequestContext
    from .._log import RequestLog
    from .._request import HttpRequest
    from .config import RetryConfig
    from .limiter import RetryLimiter

_T = TypeVar("_T")


class Wait(NamedTuple):
    """The decision to try again."""

    delay: float
    source: Literal["backoff", "retry_after", "rate_limit"]


class RetrySession(ABC):
    """The state of one call on its way through a retrying client. One call owns it.

    The client sends and waits. The session says what comes next: subclasses ask those
    who decide, one for each way to ask, and the limits are the same for all.
    """

    __slots__ = (
        "_config",
        "_ctx",
        "_earlier_cause",
        "_made",
        "_request",
        "attempt",
        "cause",
        "leave",
        "limiter",
        "planned",
        "refusal",
        "response",
        "stop_reason",
    )

    attempt: ClientRequestContext
    """The attempt under way, or the last one; before the first, the call."""

    limiter: RetryLimiter | None
    """Whom to tell how attempts end, and to ask for leave to retry."""

    leave: ClientRequestContext | None
    """The attempt whose retry the limiter gave leave for, until that retry is over."""

    planned: bool
    """Whether there is a retry that may have cost something and is not under way."""

    refusal: Exception | None
    """What a Smithy strategy refused another attempt with."""

    response: aiohttp.ClientResponse | None
    """What the last attempt brought, if it brought a response."""

    cause: Exception | None
    """What the last attempt failed with, if it failed."""

    stop_reason: RetryStopReason | None
    """Why there is no further attempt; None after a success."""

    _earlier_cause: Exception | None

    def __init__(
        self, config: RetryConfig, ctx: ClientRequestContext, request: HttpRequest
    ) -> None:
        self._config = config
        self._ctx = self.attempt = ctx
        self._request = request
        self._made = 0
        (ctx.parent or ctx)._retry_config = config
        self.limiter = config.limiter
        self.planned = False
        self.leave = None
        self.response = self.cause = self._earlier_cause = None
        self.refusal = self.stop_reason = None

    async def admit(self) -> float:
        """Wait, when a wait is over, for leave to begin; return the seconds waited."""
        return 0.0

    def new_attempt(self) -> ClientRequestContext | None:
        """Begin an attempt: its own context and log, timeout and retry count.

        Returns:
            The context of the attempt; None where there is no time for it, or another
            reason not to begin, which is noted.
        """
        if self.stop_reason is not None:
            return None
        if self._made and time_left(self._ctx) <= 0:
            self._time_out()
            return None
        self._made += 1
        self.planned = False
        request, config, ctx = self._request, self._config, self._ctx
        # Counted over the call: a decorator outside may send it through here twice.
        made_before = len(ctx.root.log._children)
        if made_before and config.retry_count_header is not None:
            request = request.with_header(config.retry_count_header, str(made_before))
        self.attempt = ctx.derive(request, timeout=config.attempt_timeout)
        return self.attempt

    def fail(self, cause: Exception) -> None:
        """Note that the attempt failed with *cause*."""
        log = self.attempt.log
        # A decorator of the caller's own may have made attempts inside this one.
        inner = log.root.children[log.attempt :]
        if any(was_sent_before(each, cause) for each in inner):
            mark_seen(cause)
        self.cause = cause

    @abstractmethod
    async def ask(self) -> bool:
        """Ask, after an attempt, whether another one is wanted."""

    def may_go_on(self, wanted: bool) -> bool:
        """Say whether there can be another attempt, and note why not.

        Args:
            wanted: What :meth:`ask` returned.
        """
        if wanted:
            self.stop_reason = self._limit()
            return self.stop_reason is None
        if self._succeeded():
            self.stop_reason = None
        elif self.stop_reason is None:
            self.stop_reason = RetryStopReason.NO_RETRY
        return False

    @abstractmethod
    async def next_delay(self) -> float | None:
        """Find out how long to wait for the next attempt; None to stop after all."""

    def fit(self, delay: float | None) -> Wait | None:
        """Fit a delay between what the server asks for and what time is left.

        Args:
            delay: What :meth:`next_delay` returned.

        Returns:
            The wait before the next attempt; None to stop, with the reason noted.
        """
        if delay is None:
            self.stop_reason = self.stop_reason or RetryStopReason.BACKOFF_EXHAUSTED
            return None
        if not (is_finite(delay) and delay >= 0):
            raise bad_argument("next_delay", delay, "seconds, finite and >= 0, or None")
        self.planned = True
        return self._accept(self._fit(delay))

    async def ask_limiter(self, wait: Wait) -> bool:
        """Ask the limiter for the retry, and note where it says no."""
        limiter = self.limiter
        if limiter is None:
            return True
        if not await acquired(limiter, self.attempt, self.cause):
            self.stop_reason = RetryStopReason.LIMITER
            return False
        self.leave = self.attempt
        # It may have taken its time.
        return self._accept(self._fit(wait.delay)) is not None

    def forget_outcome(self) -> None:
        """Part with the outcome of an attempt that is followed by another."""
        if self.cause is not None:
            drop_frames(self.cause)
            self._earlier_cause = self.cause
        self.response = self.cause = None

    def end(self) -> None:
        """Part with all outcomes: what is raised has this object in its frames."""
        self.response = self.cause = self._earlier_cause = self.refusal = None

    async def drop(self) -> None:
        """Give the leave for a retry back that is not made after all."""
        self.planned = False
        leave, self.leave = self.leave, None
        if self.limiter is not None and leave is not None:
            await released(self.limiter, leave)

    async def end_retry(self) -> None:
        """Tell the limiter that the retry that it gave leave for is over."""
        leave, self.leave = self.leave, None
        if self.limiter is not None and leave is not None:
            await ended(self.limiter, leave)

    @property
    def log(self) -> RequestLog:
        """The log that shows what is waited for next."""
        log = self.attempt.log
        # Before its own first attempt a second pass waits after the last one's.
        return log.children[-1] if log.children else log

    def _accept(self, decision: Wait | RetryStopReason) -> Wait | None:
        if isinstance(decision, Wait):
            return decision
        self.stop_reason = decision
        return None

    async def _read(
        self, look: Callable[[aiohttp.ClientResponse], Awaitable[_T]] | None = None
    ) -> _T | None:
        """Read what is wanted of a body; where that fails, the attempt has failed."""
        response = self.response
        if response is None:
            return None
        try:
            try:
                # For bodies that do not come from aiohttp, which has its own timer.
                async with asyncio.timeout_at(self.attempt.deadline):
                    if self._config.buffer_response:
                        await _content.buffer(response)
                    return None if look is None else await look(response)
            except TimeoutError as cut:
                if (passed := passed_limit(self.attempt, cut, IN_BODY)) is None:
                    raise
                raise passed() from cut
        except Exception as cause:
            _content.fail(self.attempt.log, response, cause)
            self.response, self.cause = None, cause
        return None

    def _was_cut(self) -> bool:
        """Say whether the deadline of the call cut the attempt, and note so."""
        cause = self.cause
        if cause is None or not is_timeout(cause) or time_left(self._ctx) > 0:
            return False
        self._time_out()
        return True

    def _succeeded(self) -> bool:
        return self.response is not None and self.response.status < 400

    def _limit(self) -> RetryStopReason | None:
        if self._made >= self._config.max_total_attempts:
            return RetryStopReason.MAX_TOTAL_ATTEMPTS
        if isinstance(self.cause, SpentBodyError) or is_spent(self._ctx, self._request):
            return RetryStopReason.BODY_NOT_REPLAYABLE
        return None

    def _time_out(self) -> None:
        error = ResponseTimeoutError(f"the deadline passed, attempts: {self._made}")
        error.__cause__ = self._earlier_cause or self.cause
        if was_queued(self.cause):
            mark_queued(error)
        self.cause = error
        self.stop_reason = RetryStopReason.DEADLINE

    def _hint(self) -> float:
        if not self._config.use_retry_after:
            return 0.0
        if self.response is None:
            return RetryInfo.of(self.cause and peel(self.cause)).retry_after or 0.0
        return retry_after(self.response.headers, now=time.time()) or 0.0

    def _fit(self, delay: float) -> Wait | RetryStopReason:
        hint = self._hint()
        longest = self._config.max_retry_after
        if hint > (math.inf if longest is None else longest) or hint == math.inf:
            return RetryStopReason.RETRY_AFTER_TOO_LONG
        remaining = time_left(self._ctx)
        if delay >= remaining:
            return RetryStopReason.DEADLINE
        if hint >= remaining:
            return RetryStopReason.RETRY_AFTER_TOO_LONG
        # A Smithy strategy knows the hint, and may have put it into its delay.
        if hint and hint >= delay:
            return Wait(hint, "retry_after")
        return Wait(delay, "backoff")
