"""Begin calls of a session, send their requests through the chain, end the calls.

aiohttp ends each tracker that it got, whatever comes of the request. A call that is
refused, or answered by a decorator, never gets that far; who waits for the end of its
upload would wait for ever.
"""

from __future__ import annotations

from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any, Final, Self

from multidict import CIMultiDict, getversion

from .._bodies.response_content import CLOSES_REFUSED
from .._call.call import Call, CallDefaults
from .._call.closing import refuse_as_closed
from .._call.deadline_cut import until_deadline
from .._call.outcome import PENDING
from .._call.recorder import (
    attach,
    attached_to,
    end_call,
    judge_attempt,
    record_failure,
)
from .._call.time_limits import time_left
from .._context.context import CallContext
from .._context.options import apply_options, current_options
from .._context.recording import close_result
from .._errors import RefusedRequestError, ResponseTimeoutError, UnprocessedRequestError
from .._failures.failure import failure_of, judge
from .._failures.kept_cause import KeptCause
from .._log.request_log import annotate, collecting
from .._request.arguments import MUTABLE_ARGUMENTS, Arguments, copy_arguments
from .._request.request import HttpRequest, request_of
from .._retry.config import retries_are_off
from .deadline import limit_of, response_timeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    from aiohttp import ClientSession, ClientTimeout
    from aiohttp.typedefs import StrOrURL
    from yarl import URL

    from .._context.client import HttpClient
    from .._request.endpoint import Service
    from .._text.mask import Mask


_number_of_change: Final[Any] = getversion
"""Returns a number that no headers have had before, and that each change replaces."""


def version_of(headers: CIMultiDict[str]) -> object:
    """Return a value that is another after each change of a session's headers."""
    try:
        return _number_of_change(headers)
    except TypeError:
        # aiohttp takes any mapping; others than multidict's do not count changes.
        return tuple(CIMultiDict(headers).items())


class SessionDefaults(CallDefaults):
    """Copies the headers and the limit of a session, with which its calls begin.

    Args:
        session: The session.
        mask: What the views of its calls hide.
        service: What relative URLs are joined to in place of its base URL, if anything.
        no_retries: Whether each of its calls makes one attempt.
    """

    __slots__ = ("base_url", "limit", "service", "timeout")

    base_url: URL | Service | None
    """What relative URLs are joined to."""

    limit: float | None
    """Seconds that a call may take; None for no limit."""

    timeout: ClientTimeout
    """The session's ``ClientTimeout``, the origin of the limit."""

    def __init__(
        self,
        session: ClientSession,
        mask: Mask,
        service: Service | None,
        *,
        no_retries: bool,
    ) -> None:
        headers = session._default_headers
        self.service = service
        self.base_url = session._base_url if service is None else service
        super().__init__(mask, CIMultiDict(headers), no_retries=no_retries)
        self.version = version_of(headers)
        self.timeout = session.timeout
        self.limit = limit_of(self.timeout.total)

    def of_now(self, session: ClientSession) -> Self:
        """Return the defaults anew, as those of the session have changed."""
        off = self.no_retries
        return type(self)(session, self.mask, self.service, no_retries=off)


_HOW_TO_ASK: Final = (
    "no argument of a request; around it: with request_options(retry=RetryConfig(...)),"
    " or RetryConfig.no_retry()"
)

_TRACKER: Final = "upload_tracker"
_OWN: Final = MUTABLE_ARGUMENTS | {"json", _TRACKER}
"""The arguments that the caller may change, or that are the call's alone."""


class SessionChain:
    """The chain of a session, with what its calls begin and end with.

    Args:
        client: The outermost client.
        session: The session, which is not kept.
        mask: What the views of calls hide.
        service: What relative URLs are joined to in place of the session's base URL.
    """

    __slots__ = ("client", "defaults")

    def __init__(
        self,
        client: HttpClient,
        session: ClientSession,
        mask: Mask,
        service: Service | None = None,
    ) -> None:
        self.client = client
        off = retries_are_off()
        self.defaults = SessionDefaults(session, mask, service, no_retries=off)

    async def send(
        self,
        session: ClientSession | None,
        method: str,
        target: StrOrURL,
        options: Arguments,
    ) -> aiohttp.ClientResponse:
        """Send a request through the chain, in a single call."""
        call = self._begin(session, method, target, options)
        try:
            response = await self.client.execute(call, call.request)
        except BaseException as cause:
            await _fail(call, cause)
            raise
        if call.resources is not None and call.resources.bodies:
            await _close_bodies(call, response)
        end_call(call)
        attach(call, response)
        return response

    def _begin(
        self,
        session: ClientSession | None,
        method: str,
        target: StrOrURL,
        options: Arguments,
    ) -> CallContext:
        """Begin a call, with the options of the blocks around it."""
        if session is None:
            end_unsent(options.get(_TRACKER))
            refuse_as_closed()
        around, loop = current_options(), get_running_loop()
        defaults = self.defaults
        if (
            defaults.version != version_of(session._default_headers)
            or defaults.timeout is not session._timeout
        ):
            self.defaults = defaults = defaults.of_now(session)
        is_plain = _OWN.isdisjoint(options)
        copies = options if is_plain else copy_arguments(options)
        base = defaults.base_url
        request = request_of(HttpRequest, method, target, options, copies, base)
        call = CallContext(request, loop, defaults.limit, defaults, session)
        if around is not None or "timeout" in options:
            limit = response_timeout(options, session, around)
            call.move_deadline(None if limit is None else call.started + limit)
        if not is_plain and _TRACKER in options:
            call.own_resources().bodies = (TrackedUpload(options[_TRACKER]),)
        if around is not None or collecting():
            apply_options(call, around)
        return call


async def _close_bodies(call: CallContext, response: aiohttp.ClientResponse) -> None:
    """Close the bodies of a call that was answered; without that it gets no answer."""
    try:
        await call.own_resources().close_bodies()
    except BaseException:
        close_result(call, response)
        end_call(call)
        raise


async def _fail(call: Call, cause: BaseException) -> None:
    """Name the failure of a call, close what is open, and end the call.

    Raises:
        ResponseTimeoutError: The deadline has passed in a queue.
    """
    raised = cause
    try:
        is_ours = isinstance(cause, UnprocessedRequestError | RefusedRequestError)
        if is_ours and failure_of(cause).queue is not None and time_left(call) <= 0:
            cause = _timed_out(call, cause)
        if call.outcome is PENDING:
            # A client was patched after the chain was built.
            record_failure(call, cause)
        judge_attempt(call, cause)
        annotate(call, cause)
        if isinstance(cause, TypeError) and "retry" in call.request.arguments:
            cause.add_note(_HOW_TO_ASK)
        if call.resources is not None:
            call.resources.close_responses()
    finally:
        try:
            if call.resources is not None:
                await call.resources.close_bodies()
        finally:
            end_call(call, cause)
    try:
        if cause is not raised:
            raise cause
    finally:
        # Their tracebacks have this frame: no cycle.
        del cause, raised


def _timed_out(call: Call, refused: BaseException | None) -> ResponseTimeoutError:
    """Make the error for a deadline that passed in a queue."""
    seconds = (call.deadline or call.started) - call.started
    error = ResponseTimeoutError(f"the call had {seconds:.3f} s, and was in a queue")
    error.__cause__ = error.__context__ = refused
    judge(error).queue = "limit"
    record_failure(call, error)
    return error


async def call_and_raise(
    chain: SessionChain,
    session: ClientSession | None,
    method: str,
    target: StrOrURL,
    options: Arguments,
) -> aiohttp.ClientResponse:
    """Send a request through a chain, then apply ``raise_for_status``."""
    raises = options.get("raise_for_status")
    if raises is None and session is not None:
        raises = session._raise_for_status
    if raises:
        # The decorators are to see the status, and the body where they need it.
        options["raise_for_status"] = False
    response = await chain.send(session, method, target, options)
    if raises:
        await _raise_for_status(response, raises)
    return response


async def _raise_for_status(
    response: aiohttp.ClientResponse,
    raises: bool | Callable[[aiohttp.ClientResponse], Awaitable[None]],
) -> None:
    try:
        if callable(raises):
            call = attached_to(response)
            code = raises(response)
            await (code if call is None else until_deadline(call, code, raises=True))
        else:
            response.raise_for_status()
    except BaseException as cause:
        # Before 3.14 aiohttp leaves the response open that the error has.
        carried = (*cause.args, *vars(cause).values())
        if CLOSES_REFUSED or all(each is not response for each in carried):
            response.close()
        call = attached_to(response)
        if call is not None:
            call.status_error = KeptCause(cause)
            annotate(call, cause)
        raise


class TrackedUpload:
    """The tracker of an upload, closed at the end of its call like a replayable body.

    Args:
        tracker: What the caller gave; None, or an object of a mock, has no end.
    """

    __slots__ = ("source",)

    def __init__(self, tracker: object) -> None:
        self.source = tracker

    async def end(self) -> None:
        """End the tracker if no request was sent with it."""
        end_unsent(self.source)


def end_unsent(tracker: object) -> None:
    """End an upload tracker as aiohttp does, unless aiohttp uses the tracker."""
    if not getattr(tracker, "_bound", True):
        for step in ("_bind", "_finalize"):
            getattr(tracker, step)()
