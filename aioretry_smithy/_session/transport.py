"""The innermost client of a chain: send a request, perhaps again, and record it.

A server may close an idle connection at any time, and the next request on it is lost
through no fault of its own. aiohttp sends that again by itself, once, unseen, and on a
fresh connection too. A chain that retries switches that off and does it here: seen in
the log, on reused connections only, and below all decorators.

Recorders and mocks put themselves in the place of ``ClientSession._request``; they
read, compare or pickle what they get there. What they pass on comes to a request of
aiohttp's, and only that takes the wrapped body.
"""

from __future__ import annotations

from abc import abstractmethod
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Final

from aiohttp import ClientRequest, ClientSession

from .._bodies.replayable_payload import ReplayablePayload, SpentBodyError
from .._bodies.request_body import (
    is_form_of_files,
    is_spent,
    prepare,
    spent_body_behind,
)
from .._bodies.response_content import read_whole
from .._call.deadline_cut import is_cut
from .._call.recorder import judge_request, record_failure
from .._call.time_limits import passed_limit, time_left
from .._clock import loop_time
from .._context.client import ForOneKind
from .._context.recording import record_response, watch_body
from .._failures.failure import IN_POOL, copy_marks, failure_of, judge, was_in_pool
from .._failures.frames import Trace
from .._request.endpoint import from_root, joined, url_of
from .._request.request import HttpRequest, Route, RoutedRequest
from .._retry.strategy import may_be_repeated
from .deadline import with_rest_of_timeout
from .middlewares import AnsweredHops, middlewares_of
from .request_classes import RequestClasses, broken_connection, current_upload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp

    from .._call.call import Call
    from .._call.outcome import Result
    from .._call.record import Record
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


# Whatever else is there was put there by somebody.
_OF_AIOHTTP: Final = ClientSession._request
_BUFFERS = (bytearray, memoryview)
_TAKES: Final = "_aioretry_smithy_takes_shown"


class ShownBody:
    """A body as shown to middlewares and recorders, and the replayable body to send.

    Args:
        shown: The caller's own object, or a copy of it.
        body: What can be sent again; None where it is made when it is sent.
        make: Makes it then.
    """

    __slots__ = ("_body", "_make", "shown")

    def __init__(
        self, shown: object, body: object, make: Callable[[], object] | None = None
    ) -> None:
        self.shown = shown
        self._body = body
        self._make = make

    async def prepare(self) -> None:
        """Rewind the body for recorders, which read from the start."""
        if isinstance(self._body, ReplayablePayload):
            await self._body.release_source()

    def in_place_of(self, given: object) -> object:
        """Return the body to send for the shown body; a different body as is."""
        if given is not self.shown:
            return given
        body = self._body if self._make is None else self._make()
        if isinstance(body, ReplayablePayload):
            body.reclaim_source()
        return body


def body_to_send(call: Call, given: object, data: object, *, shown: bool) -> object:
    """Return the body for aiohttp: the caller's own, what stands for it, or a wrapper.

    Args:
        call: The call.
        given: What the caller gave.
        data: The same, or a copy that nobody can change.
        shown: Whether somebody before aiohttp is to see what the caller gave.
    """
    if shown and is_form_of_files(data):
        # It is used up where a writer is made of it, which is for aiohttp to do.
        return ShownBody(given, None, partial(prepared_body, call, data))
    body = prepared_body(call, data)
    if body is data and not isinstance(given, _BUFFERS):
        # aiohttp writes a buffer after a wait, in which it may change.
        return given
    if not shown:
        return body
    if isinstance(body, ReplayablePayload) and body.source is not data:
        # A factory has made it.
        given = body.source
    return ShownBody(given, body)


def prepared_body(call: Call, data: object) -> object:
    """Return the body to send in one attempt; see :func:`prepare`."""
    if data is None:
        return None
    try:
        return prepare(call, data)
    except SpentBodyError:
        raise
    except Exception as cause:
        judge(cause).raised_by_caller = True
        raise


def is_watched(session: ClientSession, replaced: object) -> bool:
    """Say whether somebody else gets the arguments of requests before aiohttp does."""
    return replaced is not None or type(session)._request is not _OF_AIOHTTP


def take_shown(session: ClientSession) -> bool:
    """Make a session's request class accept shown bodies; False if unsupported."""
    kind = session._request_class
    if not hasattr(kind, _TAKES):
        session._request_class = kind = _taking.of(kind)
    return hasattr(kind, _TAKES)


def _members(kind: type[ClientRequest]) -> dict[str, object]:
    update: Callable[..., None] = kind.update_body_from_data

    def update_body_from_data(
        self: ClientRequest, body: object, *arguments: object, **options: object
    ) -> None:
        upload = current_upload()
        if upload is not None and upload.shown is not None:
            body = upload.shown.in_place_of(body)
        update(self, body, *arguments, **options)

    return {"update_body_from_data": update_body_from_data, _TAKES: True}


_taking: Final = RequestClasses(_members)


MAX_RESENDS: Final = 3
"""How often a pass through the transport sends again, at most."""

_STALE: Final = "stale_connection"

_is_tracked: ContextVar[bool] = ContextVar("aioretry_smithy_tracked", default=False)


def request_to_resend(
    call: Call, record: Record, request: HttpRequest, cause: Exception
) -> HttpRequest | None:
    """Return the request to send again after a failure; None where that is final.

    Final is any failure but that of a connection which was used before, and any where
    time is up or the server may not get the request twice.
    """
    broken = broken_connection(cause)
    if broken is None or failure_of(cause).raised_by_caller:
        return None
    # Where nobody can know, the first of a call is taken for a reused one.
    is_first = all(each.delay_source != _STALE for each in call.sent)
    if broken.was_reused is False or (broken.was_reused is None and not is_first):
        return None
    if (
        not may_be_repeated(call, request)
        or is_tracked(request)
        or is_spent(call, request)
        or time_left(call, record) <= 0
    ):
        return None
    passed = loop_time() - (record.first_sent or 0.0)
    again = with_rest_of_timeout(call, request, passed)
    if again is None or not broken.hops:
        return again
    around = middlewares_of(again.arguments, broken.session)
    return again.replace(middlewares=(AnsweredHops(broken.hops), *around))


def is_tracked(request: HttpRequest) -> bool:
    """Say whether aiohttp tracks the upload, and has to send again by itself.

    Its tracker serves one call of aiohttp.
    """
    return request.arguments.get("upload_tracker") is not None


async def sending_tracked(
    record: Record,
    session: ClientSession,
    send: Callable[[], Awaitable[aiohttp.ClientResponse]],
) -> aiohttp.ClientResponse:
    """Send a request that aiohttp may send again, like without a chain."""
    session._retry_connection = _ONLY_TRACKED  # type: ignore[assignment]
    token = _is_tracked.set(True)
    try:
        return await send()
    except Exception as cause:
        # As long as it can be seen whether the first send went out.
        if Trace(cause).went_out():
            record.was_sent = True
            judge(cause).reached_server = True
        raise
    finally:
        _is_tracked.reset(token)


class _OnlyTracked:
    """Stands for aiohttp's setting: on for calls with a tracker, off for all others."""

    def __bool__(self) -> bool:
        return _is_tracked.get()


_ONLY_TRACKED: Final = _OnlyTracked()
