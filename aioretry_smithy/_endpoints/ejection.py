"""Outlier ejection: exclude an endpoint for a while, then send a trial request.

One circuit breaker per endpoint, which the choice of an endpoint reads: closed while
the endpoint is well, open while it is out, half open during a trial.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final

from .._bodies.request_body import bytes_in_memory
from .._call.servers import failed_at, tries_of
from .._clock import chance
from .._errors import ResponseTimeoutError
from .._failures.failure import failure_of
from .._retry.strategy import may_be_repeated
from .state import NO_CONNECTION, SILENCE, UNHEALTHY, EndpointState, OutlierDetection

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    import aiohttp

    from .._call.call import Call
    from .._context.context import ClientRequestContext
    from .._request.endpoint import Endpoint
    from .._request.request import HttpRequest
    from .roster import Roster


CONSECUTIVE: Final = "consecutive_failures"
CONNECT: Final = "connect_failures"
RATE: Final = "failure_rate"
TRIAL: Final = "trial_failed"
RETRY_AFTER: Final = "retry_after"
CIRCUIT_OPEN: Final = "circuit_open"


def failure_to_connect(cause: Exception | None) -> str | None:
    """Return the kind of a failure to connect; None for other failures."""
    failure = failure_of(cause)
    # What is left of a call's deadline may be too short for any endpoint.
    if failure.is_unprocessed and type(cause) is not ResponseTimeoutError:
        return NO_CONNECTION
    # It was sent, or nobody can tell.
    return SILENCE if failure.kind.is_timeout else None


def note_success(state: EndpointState, began: float, now: float) -> None:
    """Note that a request succeeded."""
    if state.window is not None and began >= state.changed_at:
        state.failures = 0
        state.window.add_success(now)


def note_failure(
    state: EndpointState, ctx: ClientRequestContext, cause: Exception | None
) -> None:
    """Count a failed request; eject the endpoint after too many failures.

    What began before the endpoint was ejected, or came back, says nothing any more.
    """
    record = ctx.record
    detection, window = state.roster.detection, state.window
    if detection is None or window is None or record.started < state.changed_at:
        return
    if not state.rounds.count(ctx, cause):
        return
    window.add_failure(failed_at(ctx.call, record.outcome, cause))
    state.failures += 1
    least, rate = detection.minimum_request_threshold, detection.failure_rate_threshold
    is_one = failure_to_connect(cause) == NO_CONNECTION
    if is_one and state.failures >= detection.connect_failures:
        reason = CONNECT
    elif state.failures >= detection.consecutive_failures:
        reason = CONSECUTIVE
    elif window.exceeds(least, rate):
        reason = RATE
    else:
        return
    if state.ejected_until is None:
        eject(state, detection, reason)


def eject(state: EndpointState, detection: OutlierDetection, reason: str) -> None:
    """Eject an endpoint, unless too many are; after a failed trial for longer."""
    if state.ejected_until is None and _too_many_out(state, detection):
        return
    state.times += 1
    seconds = detection.seconds_out(state.times, chance())
    _put_out(state, state.roster.now() + seconds, reason)


def set_aside(state: EndpointState, seconds: float, reason: str) -> bool:
    """Pause an endpoint for so long, without a trial at the end; say if it is out.

    Of a server that asks for it at most ``max_ejection_time``, and not too many. A
    circuit breaker further in refuses all the same: then all but one may be out.
    """
    detection = None
    if reason == RETRY_AFTER:
        detection = state.roster.detection
        if detection is None:
            return False
        seconds = min(seconds, detection.max_ejection_time)
    if state.ejected_until is None and _too_many_out(state, detection):
        return False
    state.is_set_aside = True
    until = state.roster.now() + seconds
    _put_out(state, max(until, state.ejected_until or until), reason)
    return True


def _put_out(state: EndpointState, until: float, reason: str) -> None:
    roster = state.roster
    state.ejected_until, state.ejected_for, state.trial = until, reason, None
    state.changed_at, state.failures = roster.now(), 0
    roster.review()
    roster.tell("on_ejected", state.endpoint, reason, until)


def bring_back(state: EndpointState, took: float | None = None) -> None:
    """Let an endpoint serve again; after a trial with the latency of that."""
    roster = state.roster
    state.ejected_until = state.ejected_for = state.trial = None
    state.is_set_aside, state.times, state.failures = False, 0, 0
    state.changed_at, state.window = roster.now(), state.new_window()
    if took is not None:
        state.estimate.restart(took, roster.now())
    roster.review()
    _tell_returned(state)


def note_health(state: EndpointState, *, is_well: bool) -> None:
    """Note what a check of the health of an endpoint has said."""
    was_out, state.health = state.health is False, is_well
    if is_well and was_out:
        _tell_returned(state)
    elif not (is_well or was_out):
        state.roster.tell("on_ejected", state.endpoint, UNHEALTHY, math.inf)


def _tell_returned(state: EndpointState) -> None:
    """Notify listeners that an endpoint is back, unless still excluded."""
    if not state.is_out:
        state.roster.tell("on_returned", state.endpoint)


def _too_many_out(state: EndpointState, detection: OutlierDetection | None) -> bool:
    """Say whether the ejection limit of the group is reached, so an endpoint must stay.

    Where others follow, none has to; without *detection*, the last one has.
    """
    roster, peers = state.roster, []
    for each in roster.states:
        is_peer = each.rank == state.rank or each.is_reserve or state.is_reserve
        if each.rank > state.rank and not is_peer:
            return False
        if is_peer and each.weight:
            peers.append(each)
    if roster.is_followed:
        return False
    number = len(peers)
    most = number - 1 if detection is None else detection.most_ejected(number)
    out = sum(each is not state and each.is_out for each in peers)
    return out >= most


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
    """Say whether the settings of a call allow a retry."""
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
    """Whether the trial was cancelled at its timeout."""

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
        """Stop the timer; say whether the trial was cut, and undo that cancellation."""
        timer, task = self._timer, self._task
        self._timer = self._task = None
        if timer is not None:
            timer.cancel()
        if not self.is_cut or task is None:
            return False
        return task.uncancel() <= self._before

    def end(self, took: float | None) -> None:
        """End the trial with the latency of its answer; None for a failure."""
        state = self.state
        if state.trial is not self:
            return
        detection = state.roster.detection
        if took is not None or detection is None:
            bring_back(state, took)
        else:
            eject(state, detection, TRIAL)

    def give_up(self) -> None:
        """Release the trial slot: the request ended without a verdict."""
        if self.state.trial is self:
            self.state.trial = None
            self.state.roster.review()


class Choice:
    """The route of a request to an endpoint.

    Args:
        state: The endpoint.
        service_key: The name of the service, for what is kept per service.
        rosters: What else might serve the request, in order of preference.
        trial: The trial of the endpoint, if the request is one.
    """

    __slots__ = (
        "endpoint",
        "key",
        "middleware",
        "rosters",
        "service_key",
        "state",
        "trial",
    )

    def __init__(
        self,
        state: EndpointState,
        service_key: str,
        rosters: Sequence[Roster] = (),
        trial: Trial | None = None,
    ) -> None:
        self.state: EndpointState = state
        self.endpoint: Endpoint = state.endpoint
        self.key: str = state.key
        self.middleware: aiohttp.ClientMiddlewareType | None = state.middleware
        self.service_key: str = service_key
        self.rosters: Sequence[Roster] = rosters
        self.trial: Trial | None = trial

    @property
    def is_out(self) -> bool:
        """Whether the endpoint is ejected, paused, or unhealthy now."""
        return self.state.is_out

    def has_other(self, tried: Container[Endpoint]) -> bool:
        """Say whether a healthy untried endpoint exists, in the first healthy group."""
        return bool(self._untried(tried))

    def other_for(self, ctx: ClientRequestContext) -> EndpointState | None:
        """Return a healthy endpoint that the call has not tried; None to stay."""
        untried = self._untried({self.endpoint, *tries_of(ctx.call)})
        if not untried:
            return None
        selection = untried[0].roster.selection
        return selection._choose(ctx, untried) if selection._moves else None

    def _untried(self, tried: Container[Endpoint]) -> Sequence[EndpointState]:
        well = next(filter(None, (each.healthy() for each in self.rosters)), ())
        return [each for each in well if each.endpoint not in tried]

    def release_trial(self) -> None:
        """Release the trial slot of a request that is not sent."""
        if self.trial is not None:
            self.trial.stop()
            self.trial.give_up()
