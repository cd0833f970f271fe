"""Try with one request whether an endpoint is well again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from .._bodies.request_body import bytes_in_memory
from .._retry.strategy import may_be_repeated
from .ejection import end_trial, give_up_trial

if TYPE_CHECKING:
    from .._call.call import Call
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .state import EndpointState

_LONGEST: Final = 3.0
"""Seconds to the headers for a trial whose attempt has no limit."""


def may_try(
    state: EndpointState, ctx: ClientRequestContext, request: HttpRequest
) -> bool:
    """Say whether a request may try an endpoint for which that is due.

    It is the first one of its call, and one that may be sent again; any one where none
    such has come for a time.
    """
    record = ctx.record
    if record.number not in {None, 1} or record.is_hedge:
        return False
    detection, until = state.roster.detection, state.ejected_until
    if detection is None or until is None:
        return False
    call = ctx.call
    is_late = call.loop.time() >= until + detection.ejection_time
    return is_late or _may_be_sent_again(call, request)


def _may_be_sent_again(call: Call, request: HttpRequest) -> bool:
    data = request.arguments.get("data")
    is_whole = data is None or bytes_in_memory(data) is not None
    return is_whole and may_be_repeated(call, request)


def _may_retry(call: Call) -> bool:
    """Say whether there may be another attempt."""
    if call.defaults.no_retries:
        return False
    own = None if call.options is None else call.options.retry
    config = own or call.retry_config
    return config is None or config.max_total_attempts > 1


class Trial:
    """The request that tries an endpoint, one at a time.

    Without a time limit of its own it has 3 s to the headers, after which its call may
    go elsewhere. Where nothing retries, or may send it again, it is not cut; the trial
    has failed all the same.

    Args:
        state: The endpoint.
        ctx: The call or the attempt.
        request: The request.
    """

    __slots__ = ("_before", "_task", "_timer", "is_cut", "state")

    state: EndpointState
    """The endpoint."""

    is_cut: bool
    """Whether it was cancelled because it took too long."""

    def __init__(
        self, state: EndpointState, ctx: ClientRequestContext, request: HttpRequest
    ) -> None:
        self.state = state
        state.trial = self
        state.roster.review()
        self.is_cut = False
        self._task: asyncio.Task[object] | None = None
        # How often the task was to be cancelled before.
        self._before = 0
        self._timer: asyncio.TimerHandle | None = None
        call = ctx.call
        if ctx.deadline != call.deadline:
            return
        is_attempt = ctx.attempt is not None
        if is_attempt and _may_retry(call) and _may_be_sent_again(call, request):
            self._task = task = asyncio.current_task()
            self._before = 0 if task is None else task.cancelling()
        self._timer = call.loop.call_later(_LONGEST, self._time_out)

    def _time_out(self) -> None:
        self._timer = None
        if self._task is None:
            self.end(None)
        else:
            self.is_cut = True
            self._task.cancel()

    def stop(self) -> bool:
        """Stop the clock; say whether the trial was cut, which is then undone."""
        timer, task = self._timer, self._task
        self._timer = self._task = None
        if timer is not None:
            timer.cancel()
        if not self.is_cut or task is None:
            return False
        return task.uncancel() <= self._before

    def end(self, took: float | None) -> None:
        """Note that there was an answer after so long; None for a failure."""
        if self.state.trial is self:
            end_trial(self.state, took)

    def give_up(self) -> None:
        """Note that the request has told nothing."""
        if self.state.trial is self:
            give_up_trial(self.state)
