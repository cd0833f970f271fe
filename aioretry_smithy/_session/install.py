"""Install a chain in a session, and send all requests through the chain.

aiohttp ends each tracker that it got, whatever comes of the request. A call that is
refused, or answered by a decorator, never gets that far; who waits for the end of its
upload would wait for ever.
"""

from __future__ import annotations

import weakref
from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .._bodies.response_content import CLOSES_REFUSED
from .._call.closing import refuse_as_closed
from .._call.deadline_cut import until_deadline
from .._call.judging import judge_attempt
from .._call.outcome import PENDING
from .._call.recorder import attach, attached_to, end_call, record_failure
from .._call.time_limits import time_left
from .._context.client import chain_of, find_client, mask_of, sends_again
from .._context.context import CallContext
from .._context.options import apply_options, current_options
from .._context.recording import close_result
from .._endpoints.client import LoadBalancingClient
from .._errors import (
    RefusedRequestError,
    ResponseTimeoutError,
    UnprocessedRequestError,
    bad_argument,
)
from .._failures.failure import failure_of, judge
from .._failures.kept_cause import KeptCause
from .._log.request_log import annotate, collecting
from .._request.arguments import MUTABLE_ARGUMENTS, Arguments, copy_arguments
from .._request.request import HttpRequest
from .._retry.config import retries_are_off
from .deadline import SessionDefaults, response_timeout, version_of
from .request_classes import (
    Serializers,
    follow_hops,
    keep_json,
    mark_pool,
    measure_uploads,
    restore_serializers,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    import aiohttp
    from aiohttp import ClientSession
    from aiohttp.typedefs import StrOrURL

    from .._call.call import Call
    from .._context.client import HttpClient
    from .._request.endpoint import Service
    from .._text.mask import Mask
    from .aiohttp_transport import AiohttpTransport


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
        request = HttpRequest.of_arguments(method, target, options, copies, base)
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
            call: Any = attached_to(response)
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


_INSTALLED = "_aioretry_smithy_installed"


class _Installed(NamedTuple):
    client: HttpClient
    transport: AiohttpTransport
    request: Callable[..., Any]
    request_before: Callable[..., Any] | None
    request_class_before: type[aiohttp.ClientRequest]
    resend_before: bool | None
    serializers_before: Serializers


def service_of(client: HttpClient) -> Service | None:
    """Return the service of a chain's endpoint group; None without a group."""
    balancing = find_client(client, LoadBalancingClient)
    return None if balancing is None else balancing.service


def install(
    session: ClientSession, transport: AiohttpTransport, client: HttpClient
) -> ClientSession:
    """Let the calls of *session* go through *client*, which ends in *transport*.

    Every verb ends in ``session._request``; one attribute of the instance catches them
    all, and the session stays what it is. In a chain that sends again, aiohttp no
    longer does so behind our back: the transport does. Relative URLs are joined to the
    service of an endpoint group, if there is one.
    """
    reference = transport.session = weakref.ref(session)
    service = service_of(client)
    chain = SessionChain(client, session, mask_of(client), service)
    # Even one that never retries: a block of code may tell it to.
    sends = any(map(sends_again, chain_of(client)))
    raises = session._raise_for_status

    def _request(
        method: str, str_or_url: StrOrURL, **options: Any
    ) -> Coroutine[Any, Any, aiohttp.ClientResponse]:
        # The coroutine gets the session itself, to keep it alive while a call waits.
        # This function must not, or no session would ever be freed.
        if raises or "raise_for_status" in options:
            return call_and_raise(chain, reference(), method, str_or_url, options)
        return chain.send(reference(), method, str_or_url, options)

    attributes = vars(session)
    resend_before = session._retry_connection if sends else None
    # Another library may have put a function in the same place.
    transport.replaced = attributes.get("_request")
    attributes[_INSTALLED] = _Installed(
        client,
        transport,
        _request,
        transport.replaced,
        measure_uploads(session),
        resend_before,
        keep_json(session),
    )
    attributes["_request"] = _request
    if service is not None:
        follow_hops(session)
    if sends:
        transport.resends = bool(session._retry_connection)
        session._retry_connection = False
        mark_pool(session.connector)
    return session


def remove(session: ClientSession) -> None:
    """Undo :func:`install`; a plain session is unchanged.

    Raises:
        ValueError: Another function was put over ours.
    """
    attributes = vars(session)
    before: _Installed | None = attributes.get(_INSTALLED)
    if before is None:
        return
    request = attributes.get("_request", before.request)
    if request is not before.request:
        raise bad_argument("session._request", request, "unchanged since decorate()")
    del attributes[_INSTALLED]
    attributes.pop("_request", None)
    if before.request_before is not None:
        attributes["_request"] = before.request_before
    restore_serializers(session, before.serializers_before)
    session._request_class = before.request_class_before
    if before.resend_before is not None:
        session._retry_connection = before.resend_before


def send_with(
    session: ClientSession, request: Callable[..., Awaitable[aiohttp.ClientResponse]]
) -> None:
    """Let the chain of a session end in *request*, in place of aiohttp."""
    chain: _Installed = vars(session)[_INSTALLED]
    chain.transport.replaced = request


def installed(session: ClientSession) -> HttpClient | None:
    """Return the outermost client of a session, or None for a plain one."""
    before: _Installed | None = vars(session).get(_INSTALLED)
    return None if before is None else before.client
