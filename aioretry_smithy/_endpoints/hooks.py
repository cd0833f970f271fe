"""Send each request to one endpoint of a group, and learn from how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import aiohttp

from .._breaker.strategy import CircuitBreakerStrategy, checked_verdict
from .._call.defaults import OF_ARGUMENTS
from .._call.hooks import PASS, WAIT, Changed, Hooks, Sign
from .._call.recorder import begin_after_wait, record_failure
from .._failures.safety import mark_raised_by_caller
from .._request.routed import RoutedRequest
from .learning import learn, learn_from_loser
from .trial import Trial

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from yarl import URL

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.record import Record
    from .._request.request import HttpRequest
    from .._request.service import Service
    from .group import EndpointGroup
    from .state import EndpointState

    Chosen = EndpointState | Trial

_USUAL: Final = CircuitBreakerStrategy.on_server_error_status()


class BalancingHooks(Hooks):
    """Chooses an endpoint for each request of a service.

    Args:
        group: The endpoints.
        service: What tells the requests of the service from others.
    """

    __slots__ = ("_group", "_judge", "_service", "_verdicts", "needs_attempt")

    def __init__(self, group: EndpointGroup, service: Service) -> None:
        self._group = group
        self._service = service
        detection = group._settings.outlier_detection
        strategy = None if detection is None else detection.strategy
        strategy = strategy or _USUAL
        self._judge, self._verdicts = strategy._judge, strategy._verdicts
        is_built_in = group._settings.selection._is_built_in
        self.needs_attempt = not (is_built_in and strategy._verdicts)

    def enter(self, call: Call, scope: Scope, request: HttpRequest) -> Sign:
        """Choose an endpoint; there may be none yet."""
        asked = self._service.find(request.target)
        if asked is None or request.route is not None:
            return PASS
        chosen = self._group._pick(call, scope, request)
        return WAIT if chosen is None else _begin(call, scope, request, chosen, asked)

    async def admit(self, call: Call, scope: Scope, request: HttpRequest) -> Sign:
        """Wait for an endpoint."""
        started = call.loop.time()
        chosen = await self._group._wait(call, scope, request)
        begin_after_wait(call, scope.record, call.loop.time() - started, "endpoint")
        asked = self._service.find(request.target)
        if asked is None:
            # The endpoints are others by now, and have no origin that it names.
            return PASS
        return _begin(call, scope, request, chosen, asked)

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: Chosen,
        result: aiohttp.ClientResponse | Sign,
        cause: Exception | None,
    ) -> Awaitable[None] | None:
        """Learn from the outcome; the request is over when its body has ended."""
        record = call if scope is call else scope.record
        state = _state_of(call, record, permit)
        if isinstance(result, Sign):
            state.in_flight -= 1
        else:
            _end_with_body(state, result)
        if isinstance(permit, Trial):
            permit.stop()
        if cause is None and not record.was_sent:
            # Something on this side has answered.
            learn(state, call, record, permit, cause, verdict=None)
            return None
        verdict: object = None
        if cause is None and self._verdicts and not isinstance(result, Sign):
            verdict = self._verdicts.get(result.status)
        if verdict is None:
            try:
                verdict = self._judge(call, scope, cause)
            except BaseException as error:
                _note_mistake(call, record, error)
                learn(state, call, record, permit, cause, verdict=None)
                raise
        if verdict is True or verdict is False or verdict is None:
            learn(state, call, record, permit, cause, verdict=verdict)
            return None
        return _learn_later(state, call, record, permit, cause, verdict)

    def cancel(
        self, call: Call, scope: Scope, permit: Chosen, cause: BaseException
    ) -> None:
        """Count the request as over.

        Raises:
            TimeoutError: It was a trial that was cut.
        """
        record = scope.record
        state = _state_of(call, record, permit)
        state.in_flight -= 1
        is_cut = isinstance(permit, Trial) and permit.stop()
        if record.race is not None and record.race.is_superseded:
            learn_from_loser(state, call, record, permit)
        elif is_cut:
            raise _timed_out(state, call, record, permit) from cause
        else:
            learn(state, call, record, permit, None, verdict=None)


async def _learn_later(
    state: EndpointState,
    call: Call,
    record: Record,
    permit: Chosen,
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
    state: EndpointState, call: Call, record: Record, permit: Chosen
) -> TimeoutError:
    """Make the failure of a trial that was cut, and learn from it."""
    error = TimeoutError("no answer to a trial in time")
    record_failure(call, record, error)
    learn(state, call, record, permit, error, verdict=False)
    return error


def _begin(
    call: Call, scope: Scope, request: HttpRequest, chosen: Chosen, asked: URL
) -> Changed:
    """Begin a request to an endpoint."""
    state: EndpointState = chosen.state if isinstance(chosen, Trial) else chosen
    record = call if scope is call else scope.record
    record.route = state
    state.in_flight += 1
    routed = RoutedRequest.to(state, state.url_of(request.target, asked), request)
    record.request = routed.without_body()
    if state.endpoint.address is not None and call.care < OF_ARGUMENTS:
        call.care = OF_ARGUMENTS
    return Changed(routed, chosen)


def _state_of(call: Call, record: Record, permit: Chosen) -> EndpointState:
    """Return what a request goes to: what was chosen, or where it was sent again."""
    if call.resends:
        state: Any = record.route
        found: EndpointState = state
        return found
    # Its record may tell of another one by now, which was sent at the same time.
    return permit.state


def _end_with_body(state: EndpointState, response: aiohttp.ClientResponse) -> None:
    """Count a request as over when the body of its response has ended."""
    connection = response.connection
    # The body of a mock never ends.
    if connection is None or not isinstance(response, aiohttp.ClientResponse):
        state.in_flight -= 1
    else:
        # aiohttp calls it then, and where a response is closed or collected before.
        connection.add_callback(state.end)
