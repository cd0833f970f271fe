"""Take calls that succeed at once past the clients of a chain.

Each client offers what it does to such a call as two plain functions, which run around
one call of aiohttp. There is no context, no attempt, and a log only when it is asked
for. What is unusual takes the ordinary lane before anything is sent; an attempt that
does not succeed becomes the first attempt of the ordinary lane. The lanes differ in
nothing but the time they take.
"""

from __future__ import annotations

import time
from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any, cast

from .._breaker.client import CircuitBreakerClient
from .._call.client import chain_of
from .._call.context import ClientRequestContext
from .._call.options import current_options
from .._call.recording import record_streamed_success
from .._call.resources import CallResources
from .._call.short_lane import FirstAttempt
from .._failures.kept_cause import LOG_KEY
from .._log.attachment import attach
from .._log.capture import collecting
from .._log.late_log import log_of_call, log_of_success, record_success
from .._log.record import NO_CHILDREN
from .._log.upload import NO_BODY, Upload
from .._logging.client import LoggingClient
from .._request.copied_arguments import MUTABLE_ARGUMENTS, copy_arguments
from .._request.keys import quick_host_key
from .._request.request import HttpRequest
from .._retry.client import RetryingClient
from .aiohttp_transport import closed
from .deadline import first_limits
from .ordinary_lane import ordinary_call, outcome_of
from .uploads import sending

if TYPE_CHECKING:
    import aiohttp
    from aiohttp import ClientSession
    from aiohttp.typedefs import StrOrURL

    from .._call.client import HttpClient
    from .._call.resources import Notes
    from .._call.short_lane import LaneStep
    from .._log.late_log import CallFacts, ResponseFacts
    from .._log.request_log import RequestLog
    from .._masking.mask import Mask
    from .aiohttp_transport import AiohttpTransport
    from .deadline import FirstLimits

_OURS = {CircuitBreakerClient, LoggingClient, RetryingClient}
_BODIES = {"data", "json"}
_SIMPLE = (bytes, str, type(None))
_USUAL = _BODIES | {
    "allow_redirects",
    "auth",
    "cookies",
    "headers",
    "max_redirects",
    "params",
    "proxy",
    "ssl",
    "timeout",
}


def short_lane_of(
    client: HttpClient, transport: AiohttpTransport, mask: Mask
) -> ShortLane | None:
    """Return the short lane of a chain, or None where a client has to see every call.

    Args:
        client: The outermost client.
        transport: The innermost one.
        mask: Hides secrets in the logs.
    """
    links = chain_of(client)
    if links.pop() is not transport:
        return None
    steps: dict[HttpClient, LaneStep] = {}
    for link in links:
        # A subclass may do more.
        step = cast("Any", link)._lane_step() if type(link) in _OURS else None
        if step is None:
            return None
        steps[link] = step
    return ShortLane(client, transport, mask, steps)


class ShortLane:
    """Runs the steps of a chain around one call of aiohttp.

    Args:
        client: The outermost client, for the calls that take the ordinary lane.
        transport: The innermost one.
        mask: Hides secrets in the logs.
        steps: The steps of the clients, from the outermost to the innermost.
    """

    __slots__ = (
        "_after",
        "_before",
        "_client",
        "_config",
        "_given_timeout",
        "_last_limits",
        "_links",
        "_mask",
        "_retrying",
        "_transport",
        "_usual_timeout",
    )

    def __init__(
        self,
        client: HttpClient,
        transport: AiohttpTransport,
        mask: Mask,
        steps: dict[HttpClient, LaneStep],
    ) -> None:
        self._client = client
        self._transport = transport
        self._mask = mask
        self._retrying = next(
            (link for link in steps if isinstance(link, RetryingClient)), None
        )
        self._config = self._retrying and self._retrying.config
        asked = {link: step.before for link, step in steps.items() if step.before}
        places = {link: place for place, link in enumerate(asked)}
        self._links = list(asked)
        self._before = list(asked.values())
        self._after = [
            (places[link], step.after)
            for link, step in reversed(steps.items())
            if step.after
        ]
        # The limits of the last call, and the timeouts that they come from.
        self._given_timeout: object = None
        self._usual_timeout: object = None
        self._last_limits: FirstLimits | None = None

    async def call(
        self,
        session: ClientSession | None,
        method: str,
        target: StrOrURL,
        options: dict[str, Any],
    ) -> aiohttp.ClientResponse:
        """Send a request; go on in the ordinary lane where it does not just succeed."""
        if session is None:
            raise closed()
        method = method.upper()
        # Most calls have no other argument.
        is_plain = len(options) == 1 and "allow_redirects" in options
        has_body = not (is_plain or _BODIES.isdisjoint(options))
        limits = self._limits(session, options, is_plain, has_body)
        permits: list[Any] = []
        if limits is not None and self._before:
            host = quick_host_key(target, session._base_url) or ""
            for before in self._before:
                permit = before(host, method)
                permits.append(permit)
                if permit is None:
                    limits = None
                    break
        if limits is None:
            return await ordinary_call(
                session, self._client, self._mask, method, target, options
            )
        call_timeout, attempt_timeout, timeout = limits
        loop = get_running_loop()
        is_immutable = is_plain or MUTABLE_ARGUMENTS.isdisjoint(options)
        upload = Upload() if has_body else NO_BODY
        begun = (
            method,
            target,
            options,
            options if is_immutable else copy_arguments(options),
            session._base_url,
            session._default_headers,
            self._mask,
            self._retrying is not None,
            call_timeout,
            attempt_timeout,
            loop,
            time.time(),
            loop.time(),
            upload,
        )
        log: RequestLog | None = None
        for logs in collecting():
            log = log or log_of_call(begun)
            logs.append(log)
        if timeout is not None:
            options = {**options, "timeout": timeout}
        transport = self._transport
        notes: Notes | None = None
        try:
            answer = (
                type(session)._request(session, method, target, **options)
                if transport.replaced is None
                else transport.replaced(method, target, **options)
            )
            if has_body:
                transport.json.sending = notes = []
                answer = sending(upload, transport.json, answer)
            response = await answer
        except BaseException as cause:
            first = FirstAttempt(self._given(permits), cause=cause)
        else:
            if getattr(response, "status", 400) < 400:
                self._succeed(begun, loop.time(), log, permits, response)
                return response
            first = FirstAttempt(self._given(permits), response)
            del response
        return await self._go_on(begun, log, first, notes)

    def _limits(
        self,
        session: ClientSession,
        options: dict[str, Any],
        is_plain: bool,
        has_body: bool,
    ) -> FirstLimits | None:
        """Return the limits of a usual call; None of any other."""
        retrying = self._retrying
        if (
            current_options() is not None
            or session._raise_for_status
            or not (is_plain or _USUAL.issuperset(options))
            or (has_body and not isinstance(options.get("data"), _SIMPLE))
            or (retrying is not None and retrying.config is not self._config)
        ):
            return None
        given, usual = options.get("timeout", self), session._timeout
        if self._given_timeout is not given or self._usual_timeout is not usual:
            attempt = getattr(self._config, "attempt_timeout", None)
            self._last_limits = first_limits(options, session, attempt)
            self._given_timeout, self._usual_timeout = given, usual
        return self._last_limits

    def _given(self, permits: list[Any]) -> dict[HttpClient, Any]:
        return dict(zip(self._links, permits, strict=True))

    def _succeed(
        self,
        begun: CallFacts,
        now: float,
        log: RequestLog | None,
        permits: list[Any],
        response: aiohttp.ClientResponse,
    ) -> None:
        """Note the success of a call, and let the clients note it."""
        facts: ResponseFacts | None = None
        if response._connection is None:
            history = response._history
            first_hop = history[0] if history else response
            facts = (
                now,
                response.status,
                response.reason,
                response._headers,
                first_hop._request_info.headers,
                getattr(response.content, "total_bytes", 0),
            )
        else:
            log = log or log_of_call(begun)
            record_streamed_success(log, response)
        try:
            for place, after in self._after:
                after(permits[place], now)
        except BaseException as cause:
            self._fail(log or log_of_call(begun), response, cause)
            raise
        if facts is not None:
            if log is None:
                setattr(response, LOG_KEY, (log_of_success, begun, facts))
                return
            record_success(log, facts)
        log = log or log_of_call(begun)
        log._end_call()
        attach(log, response)

    def _fail(
        self,
        log: RequestLog,
        response: aiohttp.ClientResponse,
        cause: BaseException,
    ) -> None:
        response.close()
        log._record_failure(cause)
        log._annotate(cause)
        log._end_call()

    async def _go_on(
        self,
        begun: CallFacts,
        log: RequestLog | None,
        first: FirstAttempt,
        notes: Notes | None,
    ) -> aiohttp.ClientResponse:
        """Go on in the ordinary lane, with what came of the first attempt."""
        request = HttpRequest.of_arguments(*begun[:5])
        log = log or log_of_call(begun, request)
        if self._retrying is not None:
            (first.log,) = log.children
            log._children = NO_CHILDREN
        ctx = ClientRequestContext._after(first, request, log)
        ctx._resources = CallResources(notes)
        del first
        return await outcome_of(self._client, ctx, request)
