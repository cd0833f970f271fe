"""The innermost client of a chain: send a request, and record what came back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from .._bodies.replayable_payload import SpentBodyError
from .._bodies.request_body import prepare
from .._call.client import ForOneKind
from .._call.context import resources_of
from .._call.origin import judge_origin
from .._call.recording import record_failed_send, record_response
from .._call.time_limits import TimeLimits, passed_limit, watch_body
from .._failures.safety import mark_raised_by_caller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp

    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest


class Transport(ForOneKind, ABC):
    """Sends requests, and keeps the log and the resources of a call."""

    __slots__ = ()

    _serves = "sessions"

    @abstractmethod
    def _prepare(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> Callable[[], Awaitable[aiohttp.ClientResponse]]:
        """Return a function that sends a request; nothing is sent before its call.

        Raises:
            Exception: The request cannot be sent.
        """

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send the request, in the time that the context leaves."""
        log = ctx.log
        try:
            root = ctx.parent or ctx
            # A request that the short lane has sent is not sent again.
            first, root._first_attempt = root._first_attempt, None
            send = self._prepare(ctx, request) if first is None else first.outcome
        except BaseException as cause:
            judge_origin(cause, log)
            log._record_failure(cause)
            raise
        try:
            try:
                response = await send()
            except TimeoutError as cut:
                if (passed := passed_limit(ctx, cut)) is None:
                    raise
                raise passed() from cut
        except BaseException as cause:
            judge_origin(cause, log)
            record_failed_send(log, cause)
            raise
        log._sent = True
        record_response(log, response)
        if response.connection is not None:
            resources_of(ctx).track(response, log)
            watch_body(log, TimeLimits.of(ctx), response)
        return response


def prepared_body(ctx: ClientRequestContext, data: object) -> object:
    """Return the body to send in one attempt; see :func:`prepare`."""
    if data is None:
        return None
    try:
        return prepare(ctx, data)
    except SpentBodyError:
        raise
    except Exception as cause:
        mark_raised_by_caller(cause)
        raise
