"""Send each request to one endpoint of a group, and learn from how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

from .._breaker.strategy import checked_verdict
from .._call.connection_end import end_with
from .._call.defaults import OF_ARGUMENTS
from .._call.hooks import PASS, WAIT, Changed, Hooks, Sign
from .._call.recorder import begin_after_wait, record_failure
from .._call.response_facts import connection_of
from .._failures.marks import mark_raised_by_caller
from .._failures.safety import is_of_proxy
from .._request.routed import RoutedRequest
from .choice import give_up
from .learning import learn, learn_from_loser, learn_success
from .pin import choose_pinned, wait_for_pinned
from .proxies import goes_through_proxy
from .trial import Trial
from .visit import Visit

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from aiohttp.typedefs import StrOrURL
    from yarl import URL

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.record import Record
    from .._request.request import HttpRequest
    from .._request.service import Service
    from .choice import Chosen, Permit
    from .group import EndpointGroup
    from .state import EndpointState


class BalancingHooks(Hooks):
    """Chooses an endpoint for each request of a service.

    Args:
        group: The endpoints.
        service: What tells the requests of the service from others.
    """

    __slots__ = ("_group", "_is_behind", "_service", "needs_attempt")

    def __init__(self, group: EndpointGroup, service: Service) -> None:
        self._group = group
        self._service = service
        # One URL may ask for another thing there than with the group alone.
        self._is_behind = service is not group._service
        self.needs_attempt = group._needs_attempt

    def enter(self, call: Call, scope: Scope, request: HttpRequest) -> Sign:
        """Choose an endpoint; there may be none yet."""
        asked = self._service.find(request.target)
        if asked is None or request.route is not None:
            return PASS
        if self._group._has_addresses:
            sign = self._through_proxy(call, scope, request, asked)
            if sign is not None:
                return sign
        options = call.options
        chosen: Chosen | None
        if options is not None and options.endpoint is not None:
            chosen = choose_pinned(self._group, call, request, options.endpoint)
        else:
            chosen = self._group._pick(call, scope, request)
        if chosen is None:
            return WAIT
        target = asked if self._is_behind else request.target
        return _begin(call, scope, request, chosen, asked, target)

    async def admit(self, call: Call, scope: Scope, request: HttpRequest) -> Sign:
        """Wait for an endpoint."""
        started = call.loop.time()
        chosen: Chosen
        options = call.options
        if options is not None and options.endpoint is not None:
            pin = options.endpoint
            chosen = await wait_for_pinned(self._group, call, request, pin)
        else:
            chosen = await self._group._wait(call, scope, request)
        begin_after_wait(call, scope.record, call.loop.time() - started, "endpoint")
        asked = self._service.find(request.target)
        if asked is None:
            # The endpoints are others by now, and have no origin that it names.
            give_up(chosen)
            return PASS
        return _begin(call, scope, request, chosen, asked, asked)

    def _through_proxy(
        self, call: Call, scope: Scope, request: HttpRequest, asked: URL
    ) -> Sign | None:
        """Choose nothing where a proxy finds the address; None where none does."""
        if not goes_through_proxy(call, request, self._service, asked):
            return None
        self._group._warn_of_proxy()
        if not self._group._has_one_name:
            # The names are several, from which one is chosen all the same.
            return None
        routed = RoutedRequest.to(None, self._service.whole(asked), request)
        record = call if scope is call else scope.record
        record.request = routed.without_body()
        return Changed(routed, PASS)

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: Visit,
        result: aiohttp.ClientResponse | Sign,
        cause: Exception | None,
    ) -> Awaitable[None] | None:
        """Learn from the outcome; the request is over when its body has ended."""
        record = call if scope is call else scope.record
        if permit.close(record):
            return None
        state, chosen = permit.state, permit.chosen
        if isinstance(result, Sign):
            state.in_flight -= 1
        else:
            _end_with_body(state, result)
            if (
                record.was_sent
                and chosen is state
                and state.roster._verdicts.get(result.status) is True
            ):
                # As below, in fewer steps.
                learn_success(state, call, record, is_trial=False)
                return None
        if isinstance(chosen, Trial):
            chosen.stop()
        if not record.was_sent if cause is None else is_of_proxy(cause):
            # Something on this side has answered, or a proxy has failed.
            learn(state, call, record, chosen, None, verdict=None)
            return None
        verdict: object = None
        verdicts = state.roster._verdicts
        if cause is None and verdicts and not isinstance(result, Sign):
            verdict = verdicts.get(result.status)
        if verdict is None:
            try:
                verdict = state.roster._judge(call, scope, cause)
            except BaseException as error:
                _note_mistake(call, record, error)
                learn(state, call, record, chosen, cause, verdict=None)
                raise
        if verdict is True or verdict is False or verdict is None:
            learn(state, call, record, chosen, cause, verdict=verdict)
            return None
        return _learn_later(state, call, record, chosen, cause, verdict)

    def cancel(
        self, call: Call, scope: Scope, permit: Visit, cause: BaseException
    ) -> None:
        """Count the request as over.

        Raises:
            TimeoutError: It was a trial that was cut.
        """
        record = scope.record
        if permit.close(record):
            return
        state, chosen = permit.state, permit.chosen
        state.in_flight -= 1
        is_cut = isinstance(chosen, Trial) and chosen.stop()
        if record.race is not None and record.race.is_superseded:
            learn_from_loser(state, call, record, chosen)
        elif is_cut:
            raise _timed_out(state, call, record, chosen) from cause
        else:
            learn(state, call, record, chosen, None, verdict=None)


async def _learn_later(
    state: EndpointState,
    call: Call,
    record: Record,
    permit: Permit,
    cause: Exception | None,
    verdict: object,
) -> None:
    """Learn from an outcome once the strategy has judged it."""
    judged: bool | None = None
    try:
        judged = await checked_verdict(verdict)
    except BaseException as error:
        _note_mistake(call, record, error)
        raise
    finally:
        learn(state, call, record, permit, cause, verdict=judged)


def _note_mistake(call: Call, record: Record, error: BaseException) -> None:
    """Record what the user's strategy raised, which no retry would mend."""
    if isinstance(error, Exception):
        mark_raised_by_caller(error)
    record_failure(call, record, error)


def _timed_out(
    state: EndpointState, call: Call, record: Record, permit: Permit
) -> TimeoutError:
    """Make the failure of a trial that was cut, and learn from it."""
    error = TimeoutError("no answer to a trial in time")
    record_failure(call, record, error)
    learn(state, call, record, permit, error, verdict=False)
    return error


def _begin(
    call: Call,
    scope: Scope,
    request: HttpRequest,
    chosen: Chosen,
    asked: URL,
    target: StrOrURL,
) -> Changed:
    """Begin a request to an endpoint: its *target* is the same as what is *asked*."""
    state = chosen.state
    url = state.url_of(target, asked)
    record = call if scope is call else scope.record
    visit = Visit(call, record, chosen, url, request)
    if call.care < OF_ARGUMENTS and (
        state.middleware is not None or _has_credentials(call)
    ):
        call.care = OF_ARGUMENTS
    return visit


def _has_credentials(call: Call) -> bool:
    """Say whether the session has credentials for its requests."""
    return call.session is not None and call.session.auth is not None


def _end_with_body(state: EndpointState, response: aiohttp.ClientResponse) -> None:
    """Count a request as over when the body of its response has ended."""
    connection = connection_of(response)
    # The body of a mock never ends.
    if connection is None or not isinstance(response, aiohttp.ClientResponse):
        state.in_flight -= 1
    else:
        end_with(connection, state.end)
