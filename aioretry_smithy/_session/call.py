"""Take a call through the chain: begin it, end it, and hand over its outcome."""

from __future__ import annotations

from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any, Final

from .._bodies.new_response import CLOSES_REFUSED
from .._call.call import NO_CARE, OF_ARGUMENTS, Call
from .._call.origin import judge_attempt
from .._call.recorder import attached_to, end_call, record_failure
from .._call.time_limits import time_left
from .._context.client import Chain, changes
from .._context.enclosing import begin_call
from .._context.loop import run
from .._context.options import current_options
from .._errors import ResponseTimeoutError, UnprocessedRequestError
from .._failures.kept_cause import LOG_KEY, KeptCause
from .._failures.safety import mark_queued, was_queued
from .._log.capture import collecting
from .._log.notes import annotate
from .._request.copied_arguments import MUTABLE_ARGUMENTS, copy_arguments
from .._request.request import HttpRequest
from .aiohttp_transport import closed
from .deadline import SessionDefaults, response_timeout, version_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    from aiohttp import ClientSession
    from aiohttp.typedefs import StrOrURL

    from .._context.client import HttpClient
    from .._masking.mask import Mask
    from .._request.copied_arguments import Arguments


_WANT_CARE: Final = MUTABLE_ARGUMENTS | {"json", "timeout", "upload_tracker"}


class SessionChain(Chain):
    """The chain of a session, with what its calls begin with.

    Args:
        client: The outermost client.
        session: The session, which is not kept.
        mask: What the views of calls hide.
    """

    __slots__ = ("defaults",)

    def __init__(self, client: HttpClient, session: ClientSession, mask: Mask) -> None:
        super().__init__(client)
        self.defaults = SessionDefaults(session, mask)

    def refresh(self, session: ClientSession) -> SessionDefaults:
        """Look again at what calls begin with, since it has changed."""
        self.defaults = SessionDefaults(session, self.defaults.mask)
        return self.defaults


async def call_through(
    session: ClientSession | None,
    chain: SessionChain,
    method: str,
    target: StrOrURL,
    options: Arguments,
) -> aiohttp.ClientResponse:
    """Send a request through the chain of clients."""
    if session is None:
        raise closed()
    call = _begin(session, chain, method, target, options)
    try:
        try:
            number, row = chain.known
            if number != changes.number:
                row = chain.compiled()
            response: aiohttp.ClientResponse = await run(row, call, call, call.to_send)
        except UnprocessedRequestError as refused:
            _check_deadline(call, refused)
            raise
    except BaseException as cause:
        judge_attempt(call, call, cause)
        annotate(call, cause)
        if call.resources is not None:
            call.resources.close_responses()
        raise
    finally:
        try:
            if call.resources is not None and call.resources.bodies:
                await call.resources.close_bodies()
        finally:
            end_call(call)
    setattr(response, LOG_KEY, call)
    return response


async def call_and_raise(
    session: ClientSession | None,
    chain: SessionChain,
    method: str,
    target: StrOrURL,
    options: Arguments,
) -> aiohttp.ClientResponse:
    """Send a request likewise, and raise for the status where that is wanted."""
    refuse = options.get("raise_for_status")
    if refuse is None and session is not None:
        refuse = session._raise_for_status
    if refuse:
        # The decorators are to see the status, and the body where they need it.
        options["raise_for_status"] = False
    response = await call_through(session, chain, method, target, options)
    if refuse:
        await _refuse(response, refuse)
    return response


def _begin(
    session: ClientSession,
    chain: SessionChain,
    method: str,
    target: StrOrURL,
    options: Arguments,
) -> Call:
    """Begin a call, with the options of the blocks around it."""
    defaults, around, loop = chain.defaults, current_options(), get_running_loop()
    if (
        defaults.version != version_of(session._default_headers)
        or defaults.timeout is not session.timeout
    ):
        defaults = chain.refresh(session)
    base, timeout = session._base_url, defaults.limit
    if around is None and _WANT_CARE.isdisjoint(options):
        request = HttpRequest.of_arguments(method, target, options, options, base)
        call = Call(request, loop, timeout, defaults, session, NO_CARE)
    else:
        copies = copy_arguments(options)
        request = HttpRequest.of_arguments(method, target, options, copies, base)
        if around is not None or "timeout" in options:
            timeout = response_timeout(options, session, around)
        call = Call(request, loop, timeout, defaults, session, OF_ARGUMENTS)
        if around is not None or "timeout" in options:
            call.aiohttp_keeps_time = False
    if around is not None or collecting():
        begin_call(call, around)
    return call


def _check_deadline(call: Call, refused: Exception) -> None:
    """Raise a :class:`ResponseTimeoutError` if the deadline passed in a queue."""
    if was_queued(refused) and time_left(call) <= 0:
        raise _timed_out(call) from refused


def _timed_out(call: Call) -> ResponseTimeoutError:
    seconds = (call.deadline or call.started) - call.started
    error = ResponseTimeoutError(f"the call had {seconds:.3f} s, and was in a queue")
    mark_queued(error)
    record_failure(call, call, error)
    return error


async def _refuse(
    response: aiohttp.ClientResponse,
    refuse: bool | Callable[[aiohttp.ClientResponse], Awaitable[None]],
) -> None:
    try:
        if callable(refuse):
            await refuse(response)
        else:
            response.raise_for_status()
    except BaseException as cause:
        # Before 3.14 aiohttp leaves the response open that the error has.
        if CLOSES_REFUSED or not _carries(cause, response):
            response.close()
        call: Any = attached_to(response)
        call.refusal = KeptCause(cause)
        annotate(call, cause)
        raise


def _carries(error: BaseException, response: aiohttp.ClientResponse) -> bool:
    carried = (*error.args, *vars(error).values())
    return any(each is response for each in carried)
