"""The innermost client of a chain: send a request, and record what came back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yarl import URL

from .._bodies.request_body import prepare, refusal_behind
from .._bodies.sent_content import SpentBodyError
from .._call.defaults import OF_ALL
from .._call.origin import mark_failure_source, waited_in_pool
from .._call.outcome import PENDING, Answered
from .._call.recorder import record_failed_send, record_failure
from .._call.response_facts import connection_of
from .._call.time_limits import TimeLimits, passed_limit
from .._context.body_watch import watch_body
from .._context.client import ForOneKind, derived
from .._context.context import state_of
from .._context.loop import ONCE, Row, on_its_way, run
from .._context.recording import record_http
from .._context.sender import Sender
from .._failures.marks import mark_raised_by_caller
from .._failures.pool_queue import IN_POOL
from .._request.routed import RoutedRequest
from .._request.service import from_root, joined

if TYPE_CHECKING:
    import aiohttp

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.record import Record
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest


class Transport(ForOneKind, Sender):
    """Sends requests, and keeps the log and the resources of a call."""

    __slots__ = ()

    _serves = "sessions"

    @derived
    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send the request, in the time that the context leaves."""
        response: aiohttp.ClientResponse
        row = Row((), ONCE, (), self)
        call, scope = state_of(ctx)
        routed = _on_its_route(scope.record, request)
        response = await run(on_its_way, (row, call, scope, routed))
        return response

    def answered(
        self,
        call: Call,
        scope: Scope,
        record: Record,
        response: aiohttp.ClientResponse,
    ) -> None:
        """Record the response, and watch its body."""
        record.was_sent = True
        # The usual answer, whole already: as record_http() records it, in fewer steps.
        if call.care < OF_ALL or (
            record.outcome is PENDING and not (record.is_settled or call.waiters)
        ):
            try:
                if response.connection is None:
                    length = response.content.total_bytes
                    record.outcome = Answered(call.loop.time(), response, length)
                    return
            except AttributeError:
                pass  # a user's response class need not have all
        record_http(call, record, response)
        if connection_of(response) is not None:
            call.needs_care().track(response, scope)
            watch_body(call, record, TimeLimits.of(call, scope), response)

    async def failed(
        self,
        call: Call,
        scope: Scope,
        record: Record,
        request: HttpRequest,
        cause: BaseException,
    ) -> Any:
        """Name the limit that has passed, if one has; record the failure."""
        try:
            raise judged(call, scope, record, cause)
        finally:
            # It has this frame, which must not have it.
            del cause


def _on_its_route(record: Record, request: HttpRequest) -> HttpRequest:
    """Return a request that goes where its record says.

    One that a user's decorator has made by hand does not know, if its URL is relative.
    """
    route = record.route
    if route is None or request.route is not None:
        return request
    try:
        url = URL(request.target)
    except (TypeError, ValueError):
        # aiohttp reports it when the request is sent.
        return request
    if url.absolute or url.scheme:
        return request
    there = joined(route.endpoint.url, from_root(url))
    return RoutedRequest.to(route, there, request)


def refused(call: Call, scope: Scope, cause: BaseException) -> None:
    """Record that a request could not be sent."""
    mark_failure_source(cause, scope.record)
    record_failure(call, scope.record, cause)


def judged(
    call: Call, scope: Scope, record: Record, cause: BaseException
) -> BaseException:
    """Record a failure: which side it came from, which limit; return what to raise."""
    if record.outcome.cause is cause:
        # It was not sent, which is recorded.
        return cause
    cause = refusal_behind(call, cause) or cause
    where = IN_POOL if waited_in_pool(cause) else ""
    passed = passed_limit(call, scope, cause, where)
    if passed is not None:
        cut, cause = cause, passed()
        cause.__cause__ = cause.__context__ = cut
    mark_failure_source(cause, record)
    record_failed_send(call, record, cause)
    return cause


def prepared_body(call: Call, data: object) -> object:
    """Return the body to send in one attempt; see :func:`prepare`."""
    if data is None:
        return None
    try:
        return prepare(call, data)
    except SpentBodyError:
        raise
    except Exception as cause:
        mark_raised_by_caller(cause)
        raise
