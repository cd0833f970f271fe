"""Learn from how a request ended: how quick its endpoint is, and how well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._breaker.errors import FailFastError
from .._call.rounds import asked_for, status_judged
from .._failures.failure import is_unprocessed
from .._failures.groups import peel
from .ejection import (
    CIRCUIT_OPEN,
    RETRY_AFTER,
    bring_back,
    note_failure,
    note_success,
    set_aside,
)
from .families import kind_of
from .latency import note_answer, note_at_least, note_refusal, seconds_of
from .trial import Trial

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.record import Record
    from .state import EndpointState

    Permit = EndpointState | Trial

_UNAVAILABLE: Final = 503
_WRONG_REQUEST: Final = range(400, 500)


def learn(
    state: EndpointState,
    call: Call,
    record: Record,
    permit: Permit,
    cause: Exception | None,
    *,
    verdict: bool | None,
) -> None:
    """Learn from an outcome, which is a success, a failure, or says nothing."""
    trial = permit if isinstance(permit, Trial) else None
    if verdict is True:
        took = learn_success(state, call, record, cause, is_trial=trial is not None)
        if trial is not None:
            trial.end(took)
    elif verdict is False:
        _learn_failure(state, call, record, cause, is_trial=trial is not None)
        if trial is not None:
            trial.end(None)
    else:
        refusal = None if cause is None else peel(cause)
        is_answer = cause is None or status_judged(record, cause) is not None
        if trial is not None:
            trial.give_up()
        if isinstance(refusal, FailFastError) and refusal.is_of_endpoint:
            set_aside(state, refusal.retry_in or 0.0, CIRCUIT_OPEN)
        elif is_answer and record.was_sent:
            note_reached(state, None)
            _leave_alone(state, call, record, cause)


def learn_from_loser(
    state: EndpointState, call: Call, record: Record, permit: Permit
) -> None:
    """Learn from a request that was given up because another one had an answer."""
    now = call.loop.time()
    note_at_least(state, now - record.sent_at, state.roster.scale.growth(now))
    state.roster.settle()
    if isinstance(permit, Trial):
        permit.end(None)


def learn_success(
    state: EndpointState,
    call: Call,
    record: Record,
    cause: Exception | None = None,
    *,
    is_trial: bool,
) -> float:
    """Learn how long an answer took, and return that.

    That a request was wrong takes no time: without other answers it says nothing of
    how quick an endpoint is, which is taken to be as slow as any.
    """
    outcome, roster = record.outcome, state.roster
    ended = outcome.ended
    if ended is None:
        ended = call.loop.time()
    took = ended - record.sent_at
    growth = roster.scale.growth(ended)
    was_settled = state.grown > 0.0 and not state.penalty
    if status_judged(record, cause) in _WRONG_REQUEST:
        state.is_guess |= is_trial
        if state.is_guess:
            took = max(took, _slowest(state, growth))
        note_refusal(state, took, growth)
    else:
        state.is_guess = False
        note_answer(state, took, growth)
    note_success(state, record.started, ended)
    if state.unreached is not None and record.started >= state.changed_at:
        note_reached(state, None)
        if not is_trial and state.ejected_until is not None and not state.is_set_aside:
            # It was asked for want of others.
            bring_back(state, took)
    if not was_settled:
        state.penalty = 0.0
        roster.settle()
    return took


def note_reached(state: EndpointState, unreached: str | None) -> None:
    """Note how a request has not reached an endpoint, or that one was answered."""
    if state.unreached != unreached:
        state.unreached = unreached
        state.roster.review()


def _learn_failure(
    state: EndpointState,
    call: Call,
    record: Record,
    cause: Exception | None,
    *,
    is_trial: bool,
) -> None:
    now, roster = call.loop.time(), state.roster
    scale = roster.scale
    took = now - record.sent_at
    if record.started >= state.changed_at:
        note_reached(state, kind_of(cause))
    if scale.penalty:
        estimate = seconds_of(state, scale.growth(now))
        state.penalty = max(scale.penalty, took, estimate)
        state.chance_at = now + scale.penalty
        roster.settle()
    if is_trial:
        return
    if _leave_alone(state, call, record, cause):
        return
    note_failure(state, call, record, cause, is_connect=is_unprocessed(cause))


def _leave_alone(
    state: EndpointState, call: Call, record: Record, cause: Exception | None
) -> bool:
    """Set an endpoint aside whose answer asks for that; say whether it is."""
    if record.started < state.changed_at:
        # It has been out since then, or is back.
        return False
    is_busy = status_judged(record, cause) == _UNAVAILABLE
    asked = asked_for(call, record, cause) if is_busy else None
    return asked is not None and asked > 0 and set_aside(state, asked, RETRY_AFTER)


def _slowest(state: EndpointState, growth: float) -> float:
    """Return the longest estimate of those that have answered; 0 without one."""
    known = (seconds_of(each, growth) for each in state.roster.well if each.is_settled)
    return max(known, default=0.0)
