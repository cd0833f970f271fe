"""Take a call through the chain: begin it, end it, and hand over its outcome."""

from __future__ import annotations

from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any

from .._bodies.new_response import CLOSES_REFUSED
from .._call.attachment import attach
from .._call.call import Call
from .._call.origin import judge_attempt
from .._call.recorder import end_call, record_failure
from .._call.time_limits import time_left
from .._context.enclosing import begin_call
from .._context.loop import run
from .._context.options import current_options
from .._errors import ResponseTimeoutError, UnprocessedRequestError
from .._failures.kept_cause import KeptCause
from .._failures.safety import mark_queued, was_queued
from .._log.notes import annotate
from .._request.request import HttpRequest
from .aiohttp_transport import closed
from .deadline import response_timeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp
    from aiohttp import ClientSession
    from aiohttp.typedefs import StrOrURL

    from .._context.client import Chain
    from .._masking.mask import Mask


async def call_through(
    session: ClientSession | None,
    chain: Chain,
    mask: Mask,
    method: str,
    target: StrOrURL,
    options: dict[str, Any],
) -> aiohttp.ClientResponse:
    """Send a request through the chain of clients."""
    if session is None:
        raise closed()
    refuse = options.get("raise_for_status")
    if refuse is None:
        refuse = session._raise_for_status
    if refuse:
        # The decorators are to see the status, and the body where they need it.
        options["raise_for_status"] = False
    call = _begin(session, mask, method, target, options)
    call.session = session
    try:
        try:
            response = await run(chain.row, call, call, call.to_send)
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
        resources, call.resources, call.session = call.resources, None, None
        if resources is not None and resources.bodies:
            await resources.close_bodies()
        end_call(call)
    attach(call, response)
    if refuse:
        await _refuse(call, response, refuse)
    return response  # type: ignore[no-any-return]


def _begin(
    session: ClientSession,
    mask: Mask,
    method: str,
    target: StrOrURL,
    options: dict[str, Any],
) -> Call:
    """Begin a call, with the options of the blocks around it."""
    request = HttpRequest.of_call(method, target, options, session._base_url)
    override = current_options()
    timeout = response_timeout(options, session, override)
    headers = session._default_headers.copy()
    call = Call(request, get_running_loop(), timeout, headers, mask)
    if override is None and "timeout" not in options:
        call.aiohttp_keeps = call.deadline
    begin_call(call, override)
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
    call: Call,
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
        call.refusal = KeptCause(cause)
        annotate(call, cause)
        raise


def _carries(error: BaseException, response: aiohttp.ClientResponse) -> bool:
    carried = (*error.args, *vars(error).values())
    return any(each is response for each in carried)
