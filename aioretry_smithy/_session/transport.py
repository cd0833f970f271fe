"""The innermost client of a chain: send a request, perhaps again, and record it."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from .._bodies.request_body import spent_body_behind
from .._bodies.response_content import read_whole
from .._call.deadline_cut import is_cut
from .._call.judging import judge_request
from .._call.recorder import record_failure
from .._call.time_limits import passed_limit
from .._context.client import ForOneKind
from .._context.recording import record_response
from .._context.response_body import watch_body
from .._failures.failure import IN_POOL, copy_marks, judge, was_in_pool
from .._request.endpoint import from_root, joined, url_of
from .._request.request import HttpRequest, RoutedRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable

    import aiohttp

    from .._call.outcome import Result
    from .._call.record import Route
    from .._context.context import ClientRequestContext


class Transport(ForOneKind):
    """Sends requests, and keeps the log and the resources of a call."""

    __slots__ = ()

    _serves = "sessions"

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send the request, in the time that the context leaves.

        A body that is wanted within the attempt is read as the last step, so that all
        clients further out hear how it ended.
        """
        call, record = ctx.call, ctx.record
        if record.route is not None and request.route is None:
            request = _on_its_route(record.route, request)
        response: Result = None
        failure: BaseException | None = None
        try:
            response = await self.start(ctx, request)
        except BaseException as cause:
            # Dealt with outside of this block, it is the context of no other error.
            failure = cause
        else:
            record.was_sent = True
            if record_response(call, record, response):
                follow_body(ctx, response)
        if failure is not None:
            try:
                response = await self.recover(ctx, request, failure)
            finally:
                # Its traceback has this frame: no cycle.
                del failure
        if call.reads_whole_bodies:
            await read_whole(ctx, response)
        return response  # type: ignore[no-any-return]

    @abstractmethod
    def start(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> Awaitable[aiohttp.ClientResponse]:
        """Begin to send a request.

        Raises:
            Exception: It cannot be sent.
        """

    async def recover(
        self, ctx: ClientRequestContext, request: HttpRequest, cause: BaseException
    ) -> aiohttp.ClientResponse:
        """Return the response to a further request, or raise the recorded failure."""
        try:
            raise failure_to_raise(ctx, cause)
        finally:
            # Its traceback has this frame: no cycle.
            del cause


def follow_body(ctx: ClientRequestContext, response: aiohttp.ClientResponse) -> None:
    """Watch a body that is still to come, and close it if the call fails."""
    ctx.call.own_resources().track(response, ctx)
    watch_body(ctx, response)


def _on_its_route(route: Route, request: HttpRequest) -> HttpRequest:
    """Return a request routed to the endpoint of its record.

    One that a user's decorator has made by hand does not know, if its URL is relative.
    """
    url = url_of(request.target)
    if url is None or url.absolute or url.scheme:
        return request
    there = joined(route.endpoint.url, from_root(url))
    return RoutedRequest.to(route, there, request)


def record_unsent(ctx: ClientRequestContext, cause: BaseException) -> None:
    """Record that a request could not be sent."""
    judge(cause).reached_server |= ctx.record.was_sent
    record_failure(ctx, cause)


def failure_to_raise(ctx: ClientRequestContext, cause: BaseException) -> BaseException:
    """Record a failure with its side and time limit; return the exception to raise."""
    call, record = ctx.call, ctx.record
    if record.outcome.cause is cause:
        # It was not sent, which is recorded.
        return cause
    cause = spent_body_behind(call, cause) or cause
    if is_cut(call, cause):
        # What stands in the place of aiohttp may know no limit.
        cut, cause = cause, TimeoutError()
        cause.__cause__ = cut
    judge_request(cause, record)
    where = IN_POOL if was_in_pool(cause) else ""
    passed = passed_limit(ctx, cause, where)
    if passed is not None:
        cut, cause = cause, passed()
        cause.__cause__ = cause.__context__ = cut
        copy_marks(cause, cut)
    record_failure(ctx, cause)
    return cause
