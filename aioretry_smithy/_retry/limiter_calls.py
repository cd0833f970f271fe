"""Ask a limiter and report outcomes to it; its errors are logged."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from .._context.context import record_of
from .._failures.safety import (
    SERVER_ERRORS,
    RetrySafety,
    safety_by_kind,
    was_queued,
    was_refused,
)
from .._shown import shown

if TYPE_CHECKING:
    from .._call.record import Record
    from .._context.context import ClientRequestContext
    from .limiter import RetryLimiter

_logger = logging.getLogger("aioretry_smithy")

_SERVER_ERROR = 500


async def acquired(
    limiter: RetryLimiter, ctx: ClientRequestContext, cause: Exception | None
) -> bool:
    """Ask a limiter for a permit to retry; an error counts as a refusal."""
    try:
        answer: object = limiter.acquire(ctx, cause)
        if isinstance(answer, Awaitable):
            answer = await answer
    except Exception:
        _logger.warning("%r raised, so there is no retry", limiter, exc_info=True)
        return False
    if isinstance(answer, bool):
        return answer
    _logger.warning("%r answered %s, so there is no retry", limiter, shown(answer))
    return False


async def report(
    limiter: RetryLimiter,
    ctx: ClientRequestContext,
    cause: Exception | None,
    *,
    wanted: bool,
) -> None:
    """Tell a limiter how an attempt ended, where that says something."""
    record = record_of(ctx)[1]
    failed = _is_failure(record, cause, wanted)
    # A fallback's answer says as little of the server as the refusal it stands for.
    if failed is None or record.was_refused:
        return
    if failed:
        await notify(limiter, limiter.on_failure, ctx, cause)
    else:
        await notify(limiter, limiter.on_success, ctx)


async def notify(
    limiter: RetryLimiter,
    hook: Callable[..., Awaitable[None] | None],
    *event: object,
) -> None:
    """Report an event to a limiter; an error is logged."""
    try:
        answer = hook(*event)
        if isinstance(answer, Awaitable):
            await answer
    except Exception:
        _logger.warning("%r raised, which is ignored", limiter, exc_info=True)


def _is_failure(record: Record, cause: Exception | None, wanted: bool) -> bool | None:
    # A request that an open circuit refuses was not sent: no word of the server.
    # Nor does a wait for a place in the session's own pool.
    if was_refused(cause) or was_queued(cause):
        return None
    if wanted:
        return True
    if cause is not None:
        return None if safety_by_kind(cause) is RetrySafety.NO else True
    status = record.outcome.status
    if status is None:
        # A function that has returned has no status.
        return None if record.outcome.ended is None else False
    if status in SERVER_ERRORS:
        return True
    # What is above 5xx means nothing in HTTP.
    return False if status < _SERVER_ERROR else None
