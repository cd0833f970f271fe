"""Take calls that succeed at once past the clients of a chain.

Each client offers what it does to such a call as two plain functions, which run around
one call of aiohttp. There is no context, no attempt, and a log only when it is asked
for. What is unusual takes the ordinary lane before anything is sent; an attempt that
does not succeed becomes the first attempt of the ordinary lane. The lanes differ in
nothing but the time they take.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from .._breaker.client import CircuitBreakerClient
from .._call.client import chain_of
from .._call.context import ClientRequestContext
from .._call.options import current_options
from .._call.recording import record_success
from .._call.resources import CallResources
from .._call.short_lane import FirstAttempt
from .._log.attachment import attach
from .._log.capture import collecting
from .._log.record import NO_CHILDREN
from .._log.unmade_log import UnmadeLog
from .._log.upload import Upload
from .._logging.client import LoggingClient
from .._request.fixed_arguments import MAY_CHANGE, fixed
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


class _Limits(NamedTuple):
    """The limits of a call, and what they were worked out from."""

    given: object
    usual: object
    limits: FirstLimits | None


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
    steps: list[tuple[HttpClient, LaneStep]] = []
    retrying = None
    for link in links:
        if type(link) not in _OURS:
            # A subclass may do more.
            return None
        step = cast("Any", link)._lane_step(retrying is not None)
        if step is None:
            return None
        steps.append((link, step))
        if isinstance(link, RetryingClient):
            retrying = link
    return ShortLane(client, transport, mask, steps, retrying)


class ShortLane:
    """Runs the steps of a chain around one call of aiohttp.

    Args:
        client: The outermost client, for the calls that take the ordinary lane.
        transport: The innermost one.
        mask: Hides secrets in the logs.
        steps: The steps of the clients, from the outermost to the innermost.
        retrying: The retrying client of the chain, if there is one.
    """

    __slots__ = (
        "_after",
        "_before",
        "_client",
        "_config",
        "_holders",
        "_last",
        "_mask",
        "_retrying",
        "_transport",
    )

    def __init__(
        self,
        client: HttpClient,
        transport: AiohttpTransport,
        mask: Mask,
        steps: list[tuple[HttpClient, LaneStep]],
        retrying: RetryingClient | None,
    ) -> None:
        self._client = client
        self._transport = transport
        self._mask = mask
        self._retrying = retrying
        self._config = None if retrying is None else retrying.config
        before = [(link, step) for link, step in steps if step.before]
        places = {link: place for place, (link, _) in enumerate(before)}
        self._holders = [link for link, _ in before]
        self._before = [step.before for _, step in before if step.before]
        self._after = [
            (step.after, places.get(link))
            for link, step in reversed(steps)
            if step.after
        ]
        self._last = _Limits(None, None, None)

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
        limits = self._limits(session, options)
        if limits is None:
            return await ordinary_call(
                session, self._client, self._mask, method, target, options
            )
        call = UnmadeLog(
            method,
            target,
            options,
            options if MAY_CHANGE.isdisjoint(options) else fixed(options),
            session._base_url,
            asyncio.get_running_loop(),
            limits.call,
            limits.attempt,
            session._default_headers,
            self._mask,
            self._retrying is not None,
        )
        permits = [before(call) for before in self._before]
        if None in permits:
            return await ordinary_call(
                session, self._client, self._mask, method, target, options
            )
        has_body = not _BODIES.isdisjoint(options)
        if has_body:
            call.upload = Upload()
        for logs in collecting():
            logs.append(call.log)
        if limits.timeout is not None:
            options = {**options, "timeout": limits.timeout}
        json = self._transport.json
        notes: Notes | None = None
        try:
            answer = (
                type(session)._request(session, call.method, target, **options)
                if self._transport.replaced is None
                else self._transport.replaced(call.method, target, **options)
            )
            if has_body:
                json.sending = notes = []
                answer = sending(call.upload, json, answer)
            response = await answer
        except BaseException as cause:
            first = FirstAttempt(self._given(permits), cause=cause)
        else:
            if getattr(response, "status", 400) < 400:
                self._succeed(call, permits, response)
                return response
            first = FirstAttempt(self._given(permits), response)
            del response
        return await self._go_on(call, first, notes)

    def _limits(
        self, session: ClientSession, options: dict[str, Any]
    ) -> FirstLimits | None:
        """Return the limits of a usual call; None of any other."""
        retrying, last = self._retrying, self._last
        if (
            not _USUAL.issuperset(options)
            or not isinstance(options.get("data", ""), _SIMPLE)
            or session._raise_for_status
            or current_options() is not None
            or (retrying is not None and retrying.config is not self._config)
        ):
            return None
        given, usual = options.get("timeout", self), session._timeout
        if last.given is not given or last.usual is not usual:
            attempt = getattr(self._config, "attempt_timeout", None)
            limits = first_limits(options, session, attempt)
            self._last = last = _Limits(given, usual, limits)
        return last.limits

    def _given(self, permits: list[Any]) -> dict[HttpClient, Any]:
        return dict(zip(self._holders, permits, strict=True))

    def _succeed(
        self,
        call: UnmadeLog,
        permits: list[Any],
        response: aiohttp.ClientResponse,
    ) -> None:
        """Note the success of a call, and let the clients note it."""
        if response.connection is None:
            call.succeed(response)
        else:
            record_success(call.log, response, 1 if call.retries else None)
        try:
            for after, place in self._after:
                after(None if place is None else permits[place], call)
        except BaseException as cause:
            response.close()
            call.log._record_failure(cause)
            call.log._annotate(cause)
            raise
        finally:
            call.end()
        attach(call, response)

    async def _go_on(
        self, call: UnmadeLog, first: FirstAttempt, notes: Notes | None
    ) -> aiohttp.ClientResponse:
        """Go on in the ordinary lane, with what came of the first attempt."""
        log = call.log
        if self._retrying is not None:
            (first.log,) = log.children
            log._children = NO_CHILDREN
        ctx = ClientRequestContext._after(first, call.request, log)
        ctx._resources = CallResources(notes)
        del first
        return await outcome_of(self._client, ctx, call.request)
