"""Follow a request to an endpoint, and learn from how it ended."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import aiohttp

from .._breaker.breaker import FailFastError
from .._breaker.strategy import checked_verdict
from .._call.outcome import connection_of, end_with
from .._call.recorder import record_failure
from .._call.servers import UNAVAILABLE, asked_for, status_judged
from .._failures.failure import failure_of, judge, peel
from .._request.endpoint import joined, origin_key, path_after
from .._request.request import HttpRequest, RoutedRequest
from . import ejection

if TYPE_CHECKING:
    from yarl import URL

    from .._call.record import Record
    from .._context.context import ClientRequestContext
    from .state import EndpointState


_WRONG_REQUEST: Final = range(400, 500)


def learn(
    ctx: ClientRequestContext,
    route: ejection.Choice,
    cause: Exception | None,
    *,
    verdict: bool | None,
) -> None:
    """Learn from an outcome, which is a success, a failure, or says nothing."""
    state, trial = route.state, route.trial
    if verdict is None:
        if trial is not None:
            trial.give_up()
        _learn_no_verdict(state, ctx, cause)
        return
    took = None
    if verdict:
        took = _learn_success(state, ctx, cause, is_trial=trial is not None)
    else:
        _learn_failure(state, ctx, cause, is_trial=trial is not None)
    if trial is not None:
        trial.end(took)


def _learn_no_verdict(
    state: EndpointState, ctx: ClientRequestContext, cause: Exception | None
) -> None:
    """Pause an endpoint by its answer, or by an open circuit further in."""
    refusal = None if cause is None else peel(cause)
    if isinstance(refusal, FailFastError) and refusal.is_of_endpoint:
        ejection.set_aside(state, refusal.retry_in or 0.0, ejection.CIRCUIT_OPEN)
        return
    is_answer = cause is None or status_judged(ctx.record.outcome, cause) is not None
    if is_answer and ctx.record.was_sent:
        note_reached(state, None)
        _leave_alone(state, ctx, cause)


def learn_from_loser(ctx: ClientRequestContext, route: ejection.Choice) -> None:
    """Learn from a request that was given up for the answer of a rival."""
    state, now = route.state, ctx.call.loop.time()
    state.estimate.note_at_least(now - ctx.record.sent_at, now)
    state.roster.settle()
    if route.trial is not None:
        route.trial.end(None)


def _learn_success(
    state: EndpointState,
    ctx: ClientRequestContext,
    cause: Exception | None,
    *,
    is_trial: bool,
) -> float:
    """Learn how long an answer took, and return that.

    That a request was wrong takes no time: without other answers it says nothing of
    how quick an endpoint is, which is taken to be as slow as any.
    """
    record, roster = ctx.record, state.roster
    ended = record.outcome.ended
    if ended is None:
        ended = ctx.call.loop.time()
    took = ended - record.sent_at
    was_settled = state.is_proven
    if status_judged(record.outcome, cause) in _WRONG_REQUEST:
        state.is_guess |= is_trial
        if state.is_guess:
            took = max(took, _slowest(state, ended))
        state.estimate.note_refusal(took, ended)
    else:
        state.is_guess = False
        state.estimate.note(took, ended)
    if not was_settled:
        # Before listeners hear that it is back, who may look at its latency.
        state.penalty = 0.0
        roster.settle()
    ejection.note_success(state, record.started, ended)
    if state.unreached is not None and record.started >= state.changed_at:
        note_reached(state, None)
        if not is_trial and state.ejected_until is not None and not state.is_set_aside:
            # It was asked for want of others.
            ejection.bring_back(state, took)
    return took


def note_reached(state: EndpointState, unreached: str | None) -> None:
    """Note how a request has not reached an endpoint, or that one was answered."""
    if state.unreached != unreached:
        state.unreached = unreached
        state.roster.review()


def _learn_failure(
    state: EndpointState,
    ctx: ClientRequestContext,
    cause: Exception | None,
    *,
    is_trial: bool,
) -> None:
    now, record, roster = ctx.call.loop.time(), ctx.record, state.roster
    penalty = roster.selection._failure_penalty
    if record.started >= state.changed_at:
        note_reached(state, ejection.failure_to_connect(cause))
    if penalty:
        took = now - record.sent_at
        state.penalty = max(penalty, took, state.latency_at(now))
        state.chance_at = now + penalty
        roster.settle()
    if not (is_trial or _leave_alone(state, ctx, cause)):
        ejection.note_failure(state, ctx, cause)


def _leave_alone(
    state: EndpointState, ctx: ClientRequestContext, cause: Exception | None
) -> bool:
    """Pause an endpoint whose answer has a ``Retry-After``; say if paused."""
    record = ctx.record
    if record.started < state.changed_at:
        # It has been out since then, or is back.
        return False
    is_busy = status_judged(record.outcome, cause) == UNAVAILABLE
    asked = asked_for(ctx.call, record.outcome, cause) if is_busy else None
    if not asked:
        return False
    return ejection.set_aside(state, asked, ejection.RETRY_AFTER)


def _slowest(state: EndpointState, now: float) -> float:
    """Return the longest known latency of the healthy endpoints; 0 without any."""
    known = (each.latency_at(now) for each in state.roster.well if each.is_proven)
    return max(known, default=0.0)


_current: ContextVar[Visit | None] = ContextVar("aioretry_smithy_visit", default=None)


class Visit:
    """A request that an endpoint was chosen for, up to its answer.

    After :meth:`begin` comes exactly one of :meth:`end` and :meth:`break_off`.

    Args:
        route: The endpoint, with the alternatives for a retry.
        asked: What the endpoint is asked for.
    """

    __slots__ = ("about", "outer", "route", "sender", "url")

    route: ejection.Choice
    """The route to the current endpoint, which a resend replaces."""

    about: ClientRequestContext | None
    """The context of the request; None once it is over, or has left by a redirect."""

    url: URL
    """The URL at the endpoint."""

    def __init__(self, route: ejection.Choice, asked: URL) -> None:
        self.route = route
        self.url = route.state.url_of(asked)
        # aiohttp's timer of the last send that reached the endpoint: one for each send,
        # and for all hops of that.
        self.sender: object = None

    def begin(self, ctx: ClientRequestContext, request: HttpRequest) -> HttpRequest:
        """Count a request as in flight; return the request with the endpoint's URL."""
        record = ctx.record
        self.about = ctx
        # Calls made for this one have visits of their own.
        self.outer = _current.get()
        _current.set(self)
        self.route.state.in_flight += 1
        record.route = self.route
        routed = RoutedRequest.to(self.route, self.url, request)
        record.routed_request = routed.without_body()
        return routed

    async def end(
        self,
        ctx: ClientRequestContext,
        response: aiohttp.ClientResponse | None,
        cause: Exception | None,
    ) -> None:
        """Learn from the outcome; the request is over when its body has ended.

        Raises:
            Exception: The strategy of the group has raised it.
        """
        record = ctx.record
        if self._close(record):
            return
        route, state = self.route, self.route.state
        if response is None:
            state.in_flight -= 1
        else:
            _end_with_body(state, response)
        if route.trial is not None:
            route.trial.stop()
        if not record.was_sent if cause is None else failure_of(cause).is_of_proxy:
            # Something on this side has answered, or a proxy has failed.
            learn(ctx, route, None, verdict=None)
            return
        verdict = None
        try:
            judged = state.roster.strategy.should_report_as_success(ctx, cause)
            verdict = await checked_verdict(ctx, judged)
        except BaseException as error:
            _record_mistake(ctx, error)
            raise
        finally:
            learn(ctx, route, cause, verdict=verdict)

    def break_off(self, ctx: ClientRequestContext, cause: BaseException) -> None:
        """Count the request as interrupted, without a verdict on the endpoint.

        Raises:
            TimeoutError: It was a trial that was cut.
        """
        record = ctx.record
        if self._close(record):
            return
        route = self.route
        route.state.in_flight -= 1
        is_cut = route.trial is not None and route.trial.stop()
        if record.race is not None and record.race.is_superseded:
            learn_from_loser(ctx, route)
        elif is_cut:
            raise _timed_out(ctx, route) from cause
        else:
            learn(ctx, route, None, verdict=None)

    def _close(self, record: Record) -> bool:
        """Stop following the request; say whether the visit had ended before.

        Tasks and timers that began meanwhile, such as those of a connection in the
        pool, have this for as long as they live: they must not have the call or its
        body, and what they send later is none of this request.
        """
        if record.endpoint_changed:
            # Clients further out know of the service alone.
            record.endpoint_changed = False
        # It is another one where a call is closed in another task than it began in.
        if _current.get() is self:
            _current.set(self.outer)
        has_left = self.about is None
        self.about = self.outer = self.sender = None
        return has_left

    def leave(self, ctx: ClientRequestContext) -> None:
        """End the visit at a redirect to a different origin, as an answer.

        What becomes of the request there says nothing of the endpoint.
        """
        route, self.about = self.route, None
        if route.trial is not None:
            route.trial.stop()
        route.state.in_flight -= 1
        learn(ctx, route, None, verdict=True)

    def move(self, state: EndpointState, url: URL) -> ejection.Choice:
        """Move the request to a different endpoint; return the new route.

        The outcome of the one before says nothing.
        """
        before, self.url = self.route, url
        before.release_trial()
        before.state.in_flight -= 1
        state.in_flight += 1
        self.route = ejection.Choice(state, before.service_key, before.rosters)
        return self.route


def _end_with_body(state: EndpointState, response: aiohttp.ClientResponse) -> None:
    """Count a request as over when the body of its response has ended."""
    connection = connection_of(response)
    # The body of a mock never ends.
    if connection is None or not isinstance(response, aiohttp.ClientResponse):
        state.in_flight -= 1
    else:
        end_with(connection, state.end)


def _record_mistake(ctx: ClientRequestContext, error: BaseException) -> None:
    """Record what the user's strategy raised, which no retry would mend."""
    if isinstance(error, Exception):
        judge(error).raised_by_caller = True
    record_failure(ctx, error)


def _timed_out(ctx: ClientRequestContext, route: ejection.Choice) -> TimeoutError:
    """Make the failure of a trial that was cut, and learn from it."""
    error = TimeoutError("no answer to a trial in time")
    record_failure(ctx, error)
    learn(ctx, route, error, verdict=False)
    return error


def note_hop(url: URL, sender: object) -> None:
    """Note that aiohttp begins to send a request, perhaps after a redirect.

    Args:
        url: Where to.
        sender: An object that all hops of one request have in common.
    """
    visit = _current.get()
    if visit is None or visit.about is None:
        return
    if url is visit.url or origin_key(url) == visit.route.state.origin:
        visit.sender = sender
    elif sender is not None and visit.sender is sender:
        visit.leave(visit.about)


def move_resend(
    ctx: ClientRequestContext, stale: Record, request: HttpRequest, *, may_move: bool
) -> HttpRequest:
    """Let a request whose connection was broken go to an endpoint that is not tried.

    To the same one where no other is well, or where it is bound to that.

    Args:
        ctx: What it is sent for; its record is that of the request in its place.
        stale: The record of the request whose connection was broken.
        request: The request.
        may_move: Whether it is one from the beginning, not from a redirect on.

    Returns:
        The request to send in its place; the very same where it does not move.
    """
    visit, record = _current.get(), ctx.record
    record.route = stale.route
    if visit is None or visit.about is None or visit.about.call is not ctx.call:
        return request
    visit.about = ctx
    before, route = visit.route.state, request.route
    if not may_move or route is None or route.key != before.key:
        return request
    path = path_after(before.endpoint.url, request.url)
    state = None if path is None else visit.route.other_for(ctx)
    if path is None or state is None:
        return request
    is_same = state.endpoint.url == before.endpoint.url
    url = request.url if is_same else joined(state.endpoint.url, path)
    route = visit.move(state, url)
    routed = RoutedRequest.to(route, url, request)
    record.route, record.routed_request = route, routed.without_body()
    record.endpoint_changed = True
    return routed
