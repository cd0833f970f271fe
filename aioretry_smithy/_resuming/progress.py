"""Count the parts in a row that bring nothing, and plan the wait after them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._backoff.backoff import Backoff
from .._call.stop_reason import RetryStopReason
from .._call.time_limits import tick_of, time_left
from .._errors import AttemptTimeoutError, ResponseTimeoutError
from .._failures.failure import failure_of
from .._failures.hints import retry_after
from .._failures.safety import RetrySafety
from .._retry.config import RetryConfig
from .._retry.given_up import is_refusal
from .._retry.wait import Stop, Wait, plan_wait

if TYPE_CHECKING:
    import aiohttp

    from .._call.call import Call

_ASKED_LATER: Final = frozenset({408, 429})
_SERVER_ERROR: Final = 500
_USUAL: Final = RetryConfig.no_retry()
"""The settings for a wait where nothing retries."""


class Progress:
    """The parts in a row that brought nothing, and the wait before the next one.

    Args:
        call: The call.
        most: So many of them end the download.
    """

    __slots__ = ("_call", "_empty", "_most", "_without", "wait")

    wait: Wait | None
    """The wait before the next part is asked for; None where there is none."""

    def __init__(self, call: Call, most: int) -> None:
        self._call = call
        self._most = most
        self.note_bytes()

    def note_bytes(self) -> None:
        """Note that a part has brought something."""
        self._without = self._empty = 0
        self.wait = None

    def after_nothing(
        self, asked: float = 0.0, *, is_first: bool = False
    ) -> RetryStopReason | None:
        """Return why no part is asked for after one that brought nothing, if so.

        Args:
            asked: Seconds that the server wants to be left alone.
            is_first: Whether it was the first part, which is not counted.
        """
        self._without += not is_first
        self._empty += 1
        if self._without >= self._most:
            return RetryStopReason.BACKOFF_EXHAUSTED
        call, config = self._call, self._call.retry_config
        if not isinstance(config, RetryConfig):
            config = _USUAL
        if not config.use_retry_after:
            asked = 0.0
        wait = Wait(Backoff.of_default().next_delay(self._empty) or 0.0, "backoff")
        tick = tick_of(call.loop)
        planned = plan_wait(wait, asked, time_left(call), config, tick)
        if isinstance(planned, Stop):
            return planned.reason
        self.wait = planned
        return None

    def after_answer(self, response: aiohttp.ClientResponse) -> RetryStopReason | None:
        """Return likewise why no part is asked for after an answer without one."""
        status = response.status
        if status not in _ASKED_LATER and status < _SERVER_ERROR:
            return RetryStopReason.NO_RETRY
        return self.after_nothing(retry_after(response.headers) or 0.0)

    def after_failure(self, cause: Exception) -> RetryStopReason | None:
        """Return likewise why none is asked for after one that could not be had.

        What this side refuses for now, such as an open circuit, counts as a part.
        """
        failure = failure_of(cause)
        is_final = failure.safety is RetrySafety.NO and not is_refusal(cause)
        if is_final or reason_for(cause) is RetryStopReason.DEADLINE:
            return reason_for(cause)
        return self.after_nothing(failure.hint() or 0.0)


def reason_for(cause: Exception) -> RetryStopReason:
    """Return why a download ends with a failure after which no part is asked for."""
    is_late = isinstance(cause, ResponseTimeoutError)
    if is_late and not isinstance(cause, AttemptTimeoutError):
        return RetryStopReason.DEADLINE
    return RetryStopReason.NO_RETRY
