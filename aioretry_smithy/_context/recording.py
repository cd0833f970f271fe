"""Record what a client returned: a response, or the result of a function."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from aiohttp import StreamReader

from .._call.call import Call, Exchange
from .._call.outcome import PENDING, Answered, arrived_of, connection_of, content_of
from .._call.recorder import record_return
from .._errors import is_ours
from .._failures.hints import NO_HEADERS
from .context import AttemptContext, ClientRequestContext
from .response_body import record_end

if TYPE_CHECKING:
    from .._call.outcome import Outcome, Result
    from .._call.record import Record


_SWITCHING_PROTOCOLS = 101

# What users return by mistake: a body that was read, or what was not awaited.
_NO_RESPONSES = (Awaitable, bytes, dict, float, int, list, str, tuple)


def record_result(
    ctx: ClientRequestContext, result: Result, source: object = None
) -> None:
    """Record a result: a response, and the end of its body when it comes.

    Of what a function returned, only that it did. The stream is not wrapped: aiohttp
    releases the connection at the end of the body, also after a failure or an early
    exit, and then calls its callbacks.

    Args:
        ctx: The context of the call or of the attempt.
        result: What was returned.
        source: The decorator that returned it, if it was one.

    Raises:
        TypeError: It is None, an ``await`` was forgotten, or it is what was read of a
            response.
    """
    call = ctx.call
    if call.brings_response:
        if isinstance(ctx, AttemptContext):
            _choose_record(call, ctx, result)
        record_response(call, ctx.record, result, source)
        return
    if type(result) is CoroutineType and _is_of_client(result):
        raise _wrong(result, source)
    record_return(call, ctx.record)


def _choose_record(call: Call, attempt: AttemptContext, response: Result) -> None:
    """Let an attempt have the raced request that a response is of.

    A decorator may have sent several passes through a hedging client, and return
    another answer than the last. What it derived contexts for is theirs.
    """
    headers = getattr(response, "headers", None)
    if headers is None or attempt.record.outcome.headers is headers:
        return
    for sent in reversed(call.sent):
        if sent.outcome.headers is headers and sent.is_in_race and not sent.is_final:
            attempt.record = sent
            return


def record_response(
    call: Call, record: Record, response: Result, source: object = None
) -> bool:
    """Record a response; say whether its body is still to come over a connection.

    See :func:`record_result`. What is recorded already is not recorded again.
    """
    try:
        headers = response.headers
    except AttributeError:
        if response is None or isinstance(response, _NO_RESPONSES):
            raise _wrong(response, source) from None
        if not hasattr(response, "status"):
            raise
        headers = NO_HEADERS
    # Each client of a user's comes here too, so this is fast.
    outcome = record.outcome
    if record.is_final or (
        outcome is not PENDING
        and outcome.headers is headers
        and (headers is not NO_HEADERS or outcome.status == response.status)
    ):
        return False
    try:
        connection, content = response.connection, response.content
    except AttributeError:
        connection, content = connection_of(response), content_of(response)
    if connection is None or response.status == _SWITCHING_PROTOCOLS:
        is_usual = type(content) is StreamReader
        arrived = content.total_bytes if is_usual else arrived_of(response)
        record.outcome = Answered(call.loop.time(), response, headers, arrived)
        if call.waiters:
            call.wake()
        return connection is not None
    record.outcome = outcome = Answered(call.loop.time(), response, headers)
    record_end(call, outcome, content, connection)
    return True


def _is_of_client(coroutine: Any) -> bool:
    """Say whether a client was called and not awaited."""
    frame = coroutine.cr_frame
    if frame is None or frame.f_code.co_name != "execute":
        return False
    # A decorator has one of our clients, or an OutcomeRecorder around a user's.
    return is_ours(frame.f_globals["__name__"])


def _wrong(response: Result, source: object) -> TypeError:
    """Make the error for a result that is no response, and record the failure."""
    name = getattr(source, "__name__", type(source).__name__)
    if source is None:
        name = "the transport"
    if response is None:
        by = "" if source is None else f"; {name} returned nothing"
        return TypeError(f"response: None (expected: what the delegate returned{by})")
    if isinstance(response, Coroutine):
        response.close()
    elif isinstance(response, asyncio.Future):
        response.cancel()
    is_coroutine = type(response) is CoroutineType
    returned = "coroutine" if is_coroutine else type(response).__name__
    expected = "a response: return await delegate.execute(ctx, request)"
    return TypeError(f"{name} returned a {returned} (expected: {expected})")


def close_result(ctx: ClientRequestContext, result: Result) -> None:
    """Close a response that was lost to a later failure."""
    if ctx.call.brings_response:
        # It may be no response at all.
        with suppress(Exception):
            result.close()


def count_earlier(ctx: ClientRequestContext, earlier: Record, outcome: Outcome) -> None:
    """Make an earlier request of an attempt its outcome again."""
    earlier.outcome = outcome
    if isinstance(ctx, AttemptContext) and isinstance(earlier, Exchange):
        # Each request of an attempt has a record of its own.
        ctx.record = earlier
