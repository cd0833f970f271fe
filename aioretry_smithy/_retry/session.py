"""One call that is being retried: what was tried, and what is to come."""

from __future__ import annotations

import math
import time
import warnings
from typing import TYPE_CHECKING, Literal, NamedTuple

from .._body import SpentBodyError, is_spent
from .._errors import ResponseTimeoutError, bad_argument, is_finite, is_timeout
from .hints import retry_after
from .stop_reason import RetryStopReason

if TYPE_CHECKING:
    import aiohttp

    from .._context import ClientRequestContext
    from .._request import HttpRequest
    from .backoff import Backoff
    from .config import RetryConfig


class Wait(NamedTuple):
    """The decision to try again."""

    delay: float
    source: Literal["backoff", "retry_after"]


class RetrySession:
    """The state of one call on its way through a retrying client.

    It decides and never waits; the client acts. One call owns it.
    """

    __slots__ = (
        "_backoff",
        "_config",
        "_count",
        "_ctx",
        "_earlier_cause",
        "_made",
        "_request",
        "attempt",
        "cause",
        "response",
        "stop_reason",
    )

    attempt: ClientRequestContext
    """The attempt under way, or the last one."""

    response: aiohttp.ClientResponse | None
    """What the last attempt brought, if it brought a response."""

    cause: Exception | None
    """What the last attempt failed with, if it failed."""

    stop_reason: RetryStopReason | None
    """Why there is no further attempt; None after a success."""

    def __init__(
        self, config: RetryConfig, ctx: ClientRequestContext, request: HttpRequest
    ) -> None:
        self._config = config
        self._ctx = ctx
        self._request = request
        self._made = 0
        self._backoff: Backoff | None = None
        self._count = 0
        self._earlier_cause: Exception | None = None
        self.response = None
        self.cause = None
        self.stop_reason = None

    def may_begin(self) -> bool:
        """Say whether there is time for an attempt, and note so where there is none."""
        if self._made == 0 or self._ctx.remaining() > 0:
            return True
        self._time_out()
        return False

    def new_attempt(self) -> ClientRequestContext:
        """Begin an attempt: its own context and log, timeout and retry count."""
        self._made += 1
        request = self._request
        header = self._config.retry_count_header
        # Counted over the call: a decorator outside may send it through here twice.
        made_before = len(self._ctx.log.root.children)
        if made_before and header is not None:
            request = request.with_header(header, str(made_before))
        self.attempt = self._ctx.derive(request, timeout=self._config.attempt_timeout)
        return self.attempt

    def was_cut(self) -> bool:
        """Say whether the deadline of the call cut the attempt, and note so."""
        if not is_timeout(self.cause) or self._ctx.remaining() > 0:
            return False
        self._time_out()
        return True

    def decide(self, backoff: Backoff | None) -> Wait | None:
        """Decide what follows an attempt, without doing any of it.

        Args:
            backoff: What the strategy answered.

        Returns:
            The wait before the next attempt; None to stop, with the reason noted.
        """
        decision = self._decide(backoff)
        if isinstance(decision, Wait):
            self._earlier_cause = self.cause or self._earlier_cause
            self.cause = None
            return decision
        self.stop_reason = decision
        return None

    def _decide(self, backoff: Backoff | None) -> Wait | RetryStopReason | None:
        if backoff is None:
            response = self.response
            success = response is not None and response.status < 400
            return None if success else self.stop_reason or RetryStopReason.NO_RETRY
        if self._made >= self._config.max_total_attempts:
            return RetryStopReason.MAX_TOTAL_ATTEMPTS
        if isinstance(self.cause, SpentBodyError) or is_spent(self._ctx, self._request):
            return RetryStopReason.BODY_NOT_REPLAYABLE
        delay = self._next_delay(backoff)
        if delay is None:
            return RetryStopReason.BACKOFF_EXHAUSTED
        return self._fit(delay, self._hint())

    def _time_out(self) -> None:
        error = ResponseTimeoutError(f"the deadline passed, attempts: {self._made}")
        error.__cause__ = self._earlier_cause or self.cause
        self.cause = error
        self.stop_reason = RetryStopReason.DEADLINE

    def _next_delay(self, backoff: Backoff) -> float | None:
        if backoff is not self._backoff:
            if self._backoff is not None and backoff == self._backoff:
                _warn_about_equal_backoff(backoff)
            self._backoff = backoff
            self._count = 0
        self._count += 1
        delay = backoff.next_delay(self._count)
        if delay is not None and not (is_finite(delay) and delay >= 0):
            raise bad_argument("next_delay", delay, "seconds, finite and >= 0, or None")
        return delay

    def _hint(self) -> float:
        if self.response is None or not self._config.use_retry_after:
            return 0.0
        return retry_after(self.response.headers, now=time.time()) or 0.0

    def _fit(self, delay: float, hint: float) -> Wait | RetryStopReason:
        longest = self._config.max_retry_after
        if hint > (math.inf if longest is None else longest) or hint == math.inf:
            return RetryStopReason.RETRY_AFTER_TOO_LONG
        remaining = self._ctx.remaining()
        if delay >= remaining:
            return RetryStopReason.DEADLINE
        if hint >= remaining:
            return RetryStopReason.RETRY_AFTER_TOO_LONG
        return Wait(hint, "retry_after") if hint > delay else Wait(delay, "backoff")


def _warn_about_equal_backoff(backoff: Backoff) -> None:
    # Python's own filter keeps this to once for this line and text.
    warnings.warn(
        f"the retry strategy returned a new {backoff!r} that equals the last one; its"
        " count starts again each time, so it never grows. Make it once and keep it.",
        RuntimeWarning,
        stacklevel=2,
    )
