"""Show in a log what came back, and when: of the last attempt, for a call."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Self

from ._causes import KeptCause
from ._request_side import RequestSide

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from ._call_facts import CallFacts
    from ._outcome import Outcome


class ResponseSide(RequestSide):
    """The response side of a :class:`RequestLog`."""

    __slots__ = ()

    # The slots of the log itself: these are asked too often to go by way of another.
    _call: CallFacts
    _outcome: Outcome
    _refusal: KeptCause | None
    attempt: int | None
    started: float

    @property
    def response_timeout(self) -> float | None:
        """Seconds that the call or the attempt had, from its start; None for no limit.

        An attempt ends when its call does all the same.
        """
        deadline = self._log.deadline
        if deadline is None or deadline == math.inf:
            return None
        # To the microsecond, or clocks that run for long would show in the digits.
        return round(deadline - self.started, 6)

    @property
    def response_status(self) -> int | None:
        """The status, or None without a response."""
        return self._outcome.status

    @property
    def response_reason(self) -> str | None:
        """The reason phrase that came with the status."""
        return self._outcome.reason

    @property
    def response_headers(self) -> Mapping[str, str] | None:
        """The headers of the response, or None without one."""
        return self._outcome.headers

    @property
    def response_cause(self) -> BaseException | None:
        """The failure of the call or the attempt, or of reading the body.

        A copy of the same class and text when the call is over and nobody has it.
        """
        cause = self._refusal or self._outcome.cause
        return cause.get() if isinstance(cause, KeptCause) else cause

    @property
    def response_length(self) -> int | None:
        """Bytes of the body that were received, decoded, once it ended."""
        return self._outcome.length

    @property
    def response_content_preview(self) -> str | None:
        """The same for a text that was received, so far."""
        start = self._outcome.preview
        return None if start is None else start.text()

    @property
    def duration(self) -> float | None:
        """Seconds to the headers of the response or to the failure."""
        ended = self._outcome.ended
        return None if ended is None else ended - self.started

    @property
    def total_duration(self) -> float | None:
        """Seconds to the end of the body or to the failure."""
        ended = self._outcome.body_ended
        return None if ended is None else ended - self.started

    @property
    def is_complete(self) -> bool:
        """Whether nothing will be added: the body ended or the call failed."""
        return self._outcome.body_ended is not None

    async def when_complete(self) -> Self:
        """Wait until the call failed or the body of its response ended or failed.

        There is no time limit, and a body that nobody reads does not end.

        Returns:
            This log.

        >>> async def report(log):
        ...     print((await log.when_complete()).render())
        """
        call = self._call
        while not self._has_ended():
            future: asyncio.Future[None] = call.loop.create_future()
            call.waiters = (*call.waiters, partial(_wake, future))
            await future
        return self

    def _has_ended(self) -> bool:
        # Between two attempts a call may look as if it had ended.
        is_over = self._call.is_over
        if self.attempt is None and not is_over:
            return False
        return self.is_complete or (is_over and self._outcome.ended is None)


def _wake(future: asyncio.Future[None]) -> None:
    # Who waited may have gone.
    if not future.done():
        future.set_result(None)
