"""Do the parts of the short lane: look at a call, send it, note its success."""

from __future__ import annotations

import weakref
from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any

from .._call.context import ClientRequestContext, resources_of
from .._call.options import current_options
from .._call.recording import record_streamed_success
from .._log.attachment import attach
from .._log.late_log import (
    attach_late,
    log_of_call,
    record_success,
    request_of,
)
from .._log.outcome import PENDING
from .._log.record import NO_CHILDREN, UNMADE
from .._log.stop_reason import RetryStopReason
from .._request.copied_arguments import is_usual
from .._request.keys import quick_host_key
from .._retry.client import RetryingClient
from .deadline import CLOSE_ENOUGH, first_limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    from aiohttp import ClientSession, ClientTimeout
    from aiohttp.typedefs import StrOrURL
    from multidict import CIMultiDict
    from yarl import URL

    from .._call.client import HttpClient
    from .._call.short_lane import FirstAttempt, LaneStep
    from .._log.late_log import LateLog, ShownLimits
    from .._log.request_log import RequestLog
    from .._log.upload import Upload
    from .._masking.mask import Mask
    from .._request.request import HttpRequest
    from .aiohttp_transport import AiohttpTransport
    from .deadline import FirstLimits


class Lane:
    """Has the steps of a chain, and says which calls are usual enough for them."""

    def __init__(
        self,
        client: HttpClient,
        transport: AiohttpTransport,
        mask: Mask,
        steps: dict[HttpClient, LaneStep],
    ) -> None:
        # The client may have this lane, which then must not have the client.
        self._client: Callable[[], Any] = weakref.ref(client)
        self._transport = transport
        self._mask = mask
        retrying = [link for link in steps if isinstance(link, RetryingClient)]
        self._retrying: Callable[[], Any] | None = None
        self._config: object = None
        for link in retrying:
            self._retrying, self._config = weakref.ref(link), link.config
        asked = {link: step.before for link, step in steps.items() if step.before}
        places = {link: place for place, link in enumerate(asked)}
        self._links = [weakref.ref(link) for link in asked]
        self._before = list(asked.values())
        self._undo = {
            places[link]: step.undo for link, step in steps.items() if step.undo
        }
        noted = [
            (places[link], step.after) for link, step in steps.items() if step.after
        ]
        # Clients that hold a permit until the body ends come first: others may raise.
        self._after = sorted(noted, key=lambda note: note[0] not in self._undo)
        # The limits of the last call, and the timeouts that they come from.
        self._given_timeout: object = None
        self._usual_timeout: object = None
        self._last_limits: FirstLimits | None = None

    def _limits(
        self, session: ClientSession, options: dict[str, Any]
    ) -> FirstLimits | None:
        """Return the limits of a call; None where they, or the retries, are unusual."""
        retrying = self._retrying
        if (
            current_options() is not None
            or session._raise_for_status
            or (retrying is not None and retrying().config is not self._config)
        ):
            return None
        given, usual = options.get("timeout", self), session._timeout
        if self._given_timeout is not given or self._usual_timeout is not usual:
            attempt = getattr(self._config, "attempt_timeout", None)
            self._last_limits = first_limits(
                options, session, attempt, retries=retrying is not None
            )
            self._given_timeout, self._usual_timeout = given, usual
        return self._last_limits

    def _limits_left(
        self,
        session: ClientSession,
        ctx: ClientRequestContext,
        request: HttpRequest,
        now: float,
    ) -> FirstLimits | None:
        """Return the limits of a usual call that has all of its time left."""
        if (
            request is not ctx.request
            or ctx._is_sent
            or ctx.options is not None
            or ctx.parent is not None
            or (ctx._late is None and not is_usual(request.given))
        ):
            return None
        limits = self._limits(session, request.given)
        late = ctx._late
        if limits is None:
            return None
        seconds = limits.shown[0]
        if late is not None:
            started, is_same = late[0][-1], late[1][0] == seconds
        else:
            log = ctx.log
            started = log.started
            deadline = None if seconds is None else started + seconds
            # A pass before this one may have failed before it sent anything.
            is_new = log._children is NO_CHILDREN and log._outcome is PENDING
            is_same = is_new and log._call.deadline == deadline
        # A decorator outside may have taken its time.
        return limits if is_same and now - started <= CLOSE_ENOUGH else None

    def _begin_attempt(
        self,
        ctx: ClientRequestContext,
        headers: CIMultiDict[str],
        limits: ShownLimits,
        upload: Upload,
    ) -> None:
        """Note the first attempt of a call that has a context.

        A decorator outside may have changed the *headers* of the session.
        """
        ctx._is_sent, late = True, ctx._late
        if late is not None:
            begun = late[0]
            if headers != begun[1]:
                begun = begun[0], headers.copy(), *begun[2:]
            ctx._late = begun, limits, upload
            return
        log, (_, seconds, retries) = ctx.log, limits
        log._note_defaults(headers, log.request)
        log._deadline = None if seconds is None else log.started + seconds
        log._children = UNMADE if retries else NO_CHILDREN
        log._upload = upload

    def _permits(
        self, base_url: URL | None, method: str, target: StrOrURL, now: float
    ) -> list[Any] | None:
        """Return a permit of each client; None where one of them gives none."""
        if not self._before:
            return []
        host = quick_host_key(target, base_url) or ""
        permits: list[Any] = []
        for before in self._before:
            permit = before(host, method, now)
            if permit is None:
                for place, given in enumerate(permits):
                    if place in self._undo:
                        self._undo[place](given)
                return None
            permits.append(permit)
        return permits

    def _answer(
        self,
        session: ClientSession,
        method: str,
        target: StrOrURL,
        options: dict[str, Any],
        timeout: ClientTimeout | None,
    ) -> Awaitable[aiohttp.ClientResponse]:
        """Begin to send a request."""
        given = options
        if timeout is not None:
            given = options.copy()
            given["timeout"] = timeout
        replaced = self._transport.replaced
        if replaced is None:
            return type(session)._request(session, method, target, **given)
        return replaced(method, target, **given)

    def _context_after(
        self,
        first: FirstAttempt,
        late: LateLog,
        log: RequestLog | None,
        permits: list[Any],
    ) -> ClientRequestContext:
        """Make the context of a call whose first attempt did not succeed."""
        request = request_of(late[0][0])
        ctx = ClientRequestContext._of(request, log or log_of_call(late, request))
        ctx._is_sent = True
        self._hand_over(ctx, first, permits)
        return ctx

    def _succeed(
        self,
        late: LateLog,
        log: RequestLog | None,
        permits: list[Any],
        response: aiohttp.ClientResponse,
        now: float,
    ) -> None:
        """Note the success of a call that has no context, and perhaps no log yet."""
        if log is None and response.connection is None:
            try:
                for place, after in self._after:
                    after(permits[place], now, response)
            except BaseException as cause:
                log = log_of_call(late)
                record_success(log, response, now)
                _fail(log, response, cause)
                raise
            attach_late(response, late, now)
            return
        log = log or log_of_call(late)
        self._note_success(log, now, permits, response)
        log._end_call()
        attach(log, response)

    def _succeed_within(
        self,
        ctx: ClientRequestContext,
        permits: list[Any],
        response: aiohttp.ClientResponse,
    ) -> bool:
        """Note the success of a call with a context; False if it goes on otherwise."""
        now = get_running_loop().time()
        if response.connection is None and ctx._late is not None:
            ctx._answer, ctx._answered_at = response, now
            try:
                for place, after in self._after:
                    after(permits[place], now, response)
            except BaseException as cause:
                _fail(ctx.log, response, cause)
                raise
            return True
        log = ctx.log
        # A decorator may have answered, or sent again, without waiting for this.
        if log._is_settled or len(log._children) >= 2:
            return False
        if response.connection is not None:
            resources_of(ctx).track(response)
        self._note_success(log, now, permits, response)
        return True

    def _note_success(
        self,
        log: RequestLog,
        now: float,
        permits: list[Any],
        response: aiohttp.ClientResponse,
    ) -> None:
        """Record a success in the log of its call, and let the clients note it."""
        if response.connection is None:
            record_success(log, response, now)
        else:
            record_streamed_success(log, response)
        try:
            for place, after in self._after:
                after(permits[place], now, response)
        except BaseException as cause:
            _fail(log, response, cause)
            raise

    def _hand_over(
        self, ctx: ClientRequestContext, first: FirstAttempt, permits: list[Any]
    ) -> None:
        """Let the ordinary lane go on from the outcome of the first attempt."""
        log = ctx.log
        first.permits = {
            link(): permit for link, permit in zip(self._links, permits, strict=True)
        }
        if self._retrying is not None:
            # A decorator may have made other attempts meanwhile.
            first.log = log.children[0]
        if first.json:
            resources_of(ctx).json, first.json = first.json, None
        ctx._first_attempt = first


def _fail(
    log: RequestLog, response: aiohttp.ClientResponse, cause: BaseException
) -> None:
    response.close()
    # The attempt has its answer all the same.
    if log.children:
        raised = isinstance(cause, Exception)
        log.stop_reason = (
            RetryStopReason.NO_RETRY if raised else RetryStopReason.CANCELLED
        )
    log._record_failure(cause)
    log._annotate(cause)
    log._end_call()
