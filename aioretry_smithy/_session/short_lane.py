"""Take calls that succeed at once past the clients of a chain.

Each client offers what it does to such a call as plain functions, which run around
one call of aiohttp. No context is made, no attempt, and a log only when it is asked
for. An unusual call takes the ordinary lane before anything is sent; an attempt that
does not succeed becomes the first attempt of the ordinary lane. The lanes differ in
nothing but the time they take.
"""

from __future__ import annotations

import time
from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any

from aiohttp import ClientResponse

from .._breaker.client import CircuitBreakerClient
from .._call.chain import sends_again
from .._call.client import chain_of
from .._call.short_lane import FirstAttempt
from .._limits.client import ConcurrencyLimitingClient
from .._limits.rate_client import RateLimitingClient
from .._log.capture import collecting
from .._log.late_log import log_of_call
from .._log.upload import NO_BODY
from .._logging.client import LoggingClient
from .._request.copied_arguments import PLAIN, usual_copies
from .._retry.client import RetryingClient
from .aiohttp_transport import closed
from .lane import Lane
from .ordinary_lane import ordinary_call
from .uploads import close_upload, has_body_in, open_upload

if TYPE_CHECKING:
    from collections.abc import Awaitable

    import aiohttp
    from aiohttp import ClientSession
    from aiohttp.typedefs import StrOrURL

    from .._call.client import HttpClient
    from .._call.context import ClientRequestContext
    from .._call.short_lane import LaneStep
    from .._log.late_log import LateLog
    from .._log.request_log import RequestLog
    from .._masking.mask import Mask
    from .._request.request import HttpRequest
    from .aiohttp_transport import AiohttpTransport

_OURS = {
    CircuitBreakerClient,
    ConcurrencyLimitingClient,
    LoggingClient,
    RateLimitingClient,
    RetryingClient,
}


def short_lane_of(
    client: HttpClient, transport: AiohttpTransport, mask: Mask
) -> ShortLane | None:
    """Return the short lane of a chain, or None where a client has to see every call.

    Where only outer clients have to, the clients inside them get a short lane.
    """
    links = chain_of(client)
    if links.pop() is not transport:
        return None
    steps: dict[HttpClient, LaneStep] = {}
    while links:
        # A subclass may do more.
        link: Any = links[-1]
        step = link._lane_step() if type(link) in _OURS else None
        if step is None:
            break
        steps[links.pop()] = step
    if not links:
        return ShortLane(client, transport, mask, steps)
    if steps and not any(map(sends_again, links)):
        inner: Any = next(reversed(steps))
        inner.execute = ShortLane(inner, transport, mask, steps).execute
    return None


def has_short_lane_inside(client: HttpClient) -> bool:
    """Say whether clients further in have a short lane."""
    executes = (
        getattr(link, "__dict__", {}).get("execute") for link in chain_of(client)
    )
    return any(
        isinstance(getattr(each, "__self__", None), ShortLane) for each in executes
    )


class ShortLane(Lane):
    """Runs the steps of a chain around one call of aiohttp."""

    async def call(
        self,
        session: ClientSession | None,
        client: HttpClient,
        method: str,
        target: StrOrURL,
        options: dict[str, Any],
    ) -> aiohttp.ClientResponse:
        """Send a request; go on in the ordinary lane where it does not just succeed.

        The call keeps the *client*: the session may be undecorated meanwhile.
        """
        if session is None:
            raise closed()
        method = method.upper()
        # A GET without headers and params has no other argument.
        is_plain = len(options) == 1 and "allow_redirects" in options
        copies, has_body = PLAIN if is_plain else usual_copies(options)
        limits = None if copies is None else self._limits(session, options)
        loop = get_running_loop()
        now = loop.time()
        permits = limits and self._permits(session._base_url, method, target, now)
        if copies is None or limits is None or permits is None:
            return await ordinary_call(
                session, client, self._mask, method, target, options
            )
        sent = method, target, options, copies, session._base_url
        headers = session._default_headers.copy()
        begun = sent, headers, self._mask, loop, time.time(), now
        log = None
        # Before aiohttp, which may send the body in a task of a middleware.
        upload = open_upload() if has_body else NO_BODY
        try:
            if collecting():
                log = _captured((begun, limits.shown, upload))
            # Not by way of a variable: a mock's future would keep the response.
            response = await self._answer(
                session, method, target, options, limits.timeout
            )
        except BaseException as cause:
            first = FirstAttempt(None, cause, upload.json)
        else:
            if _is_success(response):
                if has_body:
                    # The body is not to live as long as the response.
                    options["data"] = options["json"] = None
                late, now = (begun, limits.shown, upload), loop.time()
                self._succeed(late, log, permits, response, now)
                return response
            first = FirstAttempt(response, None, upload.json)
            del response
        finally:
            if has_body:
                close_upload(upload)
        ctx = self._context_after(first, (begun, limits.shown, upload), log, permits)
        del first
        return await ordinary_call(
            session, client, self._mask, method, target, options, ctx
        )

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Do the same where clients outside have seen the call: it has a context."""
        session = self._transport.session()
        now, left = get_running_loop().time(), self._limits_left
        limits = None if session is None else left(session, ctx, request, now)
        base_url, method, target = request._base_url, request.method, request.target
        permits = self._permits(base_url, method, target, now) if limits else None
        if session is None or limits is None or permits is None:
            return await self._ordinary(ctx, request)
        given = request.given
        # A decorator outside may have waited, and the caller changed it meanwhile.
        if given != request.arguments:
            given = request.arguments
        has_body = has_body_in(given)
        upload = open_upload() if has_body else NO_BODY
        self._begin_attempt(ctx, session._default_headers, limits.shown, upload)
        try:
            response = await self._answer(
                session, method, target, given, limits.timeout
            )
        except BaseException as cause:
            first = FirstAttempt(None, cause, upload.json)
        else:
            if _is_success(response) and self._succeed_within(ctx, permits, response):
                return response
            first = FirstAttempt(response, None, upload.json)
            del response
        finally:
            if has_body:
                close_upload(upload)
        self._hand_over(ctx, first, permits)
        del first
        return await self._ordinary(ctx, request)

    def _ordinary(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> Awaitable[aiohttp.ClientResponse]:
        client = self._client()
        return type(client).execute(client, ctx, request)  # type: ignore[no-any-return]


def _is_success(response: ClientResponse) -> bool:
    kind = type(response)
    # A mock may lack anything.
    is_real = kind is ClientResponse or issubclass(kind, ClientResponse)
    return is_real and response.status < 400


def _captured(late: LateLog) -> RequestLog:
    """Give the log of a call that begins to the blocks around that collect logs."""
    log = log_of_call(late)
    for logs in collecting():
        logs.append(log)
    return log
