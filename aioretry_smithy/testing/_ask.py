"""Ask a strategy what it would do, without a session."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING

from .._context import ClientRequestContext
from .._errors import bad_argument
from .._request import HttpRequest
from .._response import new_response, observe

if TYPE_CHECKING:
    from .._retry.backoff import Backoff
    from .._retry.strategy import RetryStrategy


async def ask(
    strategy: RetryStrategy,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    cause: Exception | None = None,
    method: str = "GET",
    attempt: int = 1,
) -> Backoff | None:
    """Ask a strategy for its answer to one outcome.

    Args:
        strategy: The strategy, plain or ``async``.
        status: The status of the response; 200 unless there is a *cause*.
        headers: The headers of the response.
        cause: What the attempt failed with, instead of a response.
        method: The method of the request.
        attempt: Which attempt of the call it was, from 1.

    Returns:
        The backoff it would wait by, or None when it would stop.

    Raises:
        ValueError: *attempt* is out of range.

    >>> import asyncio
    >>> asyncio.run(ask(RetryStrategy.failsafe(Backoff.fixed(1.0)), status=503))
    Backoff.fixed(1.0)
    >>> asyncio.run(ask(RetryStrategy.failsafe(), status=503, method="POST"))
    """
    request = HttpRequest(method, "http://localhost/")
    if type(attempt) is not int or attempt < 1:
        raise bad_argument("attempt", attempt, "an integer >= 1")
    root = ClientRequestContext(request)
    *_, ctx = [root.derive(request) for _ in range(attempt)]
    if cause is None:
        response = new_response(
            ctx.request, 200 if status is None else status, headers=headers
        )
        observe(ctx.log, response)
    else:
        ctx.log.record_failure(cause)
    answer = strategy.should_retry(ctx, cause)
    return await answer if isinstance(answer, Awaitable) else answer
