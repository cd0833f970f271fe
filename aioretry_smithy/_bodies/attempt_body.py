"""Read a body within its attempt, which has failed where the body does."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from .._call.time_limits import IN_BODY, passed_limit
from .response_content import buffer, read_head, record_body_failure
from .response_preview import keep_preview

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp

    from .._call.call import Context

_T = TypeVar("_T")


async def read_within(
    ctx: Context,
    response: aiohttp.ClientResponse,
    look: Callable[[aiohttp.ClientResponse], Awaitable[_T]],
) -> _T:
    """Read what is wanted of a body within the time of its attempt or call.

    Raises:
        Exception: The body failed; so the attempt has failed, also in its log.
    """
    try:
        try:
            # For bodies that are not from aiohttp, which has its own timer.
            async with asyncio.timeout_at(ctx.call.deadline_of(ctx.record)):
                return await look(response)
        except TimeoutError as cut:
            if (passed := passed_limit(ctx, cut, IN_BODY)) is None:
                raise
            raise passed() from cut
    except Exception as cause:
        record_body_failure(ctx.call, ctx.record, response, cause)
        raise


async def read_whole(ctx: Context, response: aiohttp.ClientResponse) -> None:
    """Read a body whole likewise; the response stays readable.

    The log gets the preview that is wanted, whatever comes of it.

    Raises:
        BaseException: The body failed, or something broke into the reading of it.
    """
    record = ctx.record
    if record.preview_length is not None:
        keep_preview(record, response, record.preview_length)
    try:
        await read_within(ctx, response, buffer)
    except Exception:
        raise
    except BaseException as broken_off:
        record_body_failure(ctx.call, record, response, broken_off)
        raise


async def read_head_of(
    ctx: Context, response: aiohttp.ClientResponse, limit: int
) -> bytes:
    """Return the first *limit* bytes of a body likewise; the response stays readable.

    Raises:
        Exception: The body failed.
    """
    return await read_within(ctx, response, partial(read_head, limit=limit))
