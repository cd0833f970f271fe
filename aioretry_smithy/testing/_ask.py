"""Ask a strategy about one outcome, without a session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING

from .._bodies.new_response import new_response
from .._call.call import CallDefaults
from .._context.context import CallContext
from .._context.recording import record_error, record_result
from .._errors import bad_argument, call_it
from .._request.request import HttpRequest
from .._retry.strategy import RetryDecision, RetryStrategy, RetryStrategyWithContent

if TYPE_CHECKING:
    from .._policies.backoff import Backoff


_KINDS = RetryStrategy, RetryStrategyWithContent


async def ask(
    strategy: RetryStrategy | RetryStrategyWithContent,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    cause: Exception | None = None,
    content: bytes | None = None,
    method: str = "GET",
    attempt: int = 1,
) -> Backoff | None:
    """Ask a strategy for its answer to one outcome.

    Args:
        strategy: A strategy of either kind or a chain of them, plain or ``async``.
        status: The status of the response; 200 unless there is a *cause*.
        headers: The headers of the response.
        cause: The exception of a failed attempt, instead of a response.
        content: The body of the response, decoded; empty unless given. A strategy that
            looks at content gets as much of it as its ``max_content_length`` allows.
        method: The method of the request.
        attempt: The number of the attempt, from 1.

    Returns:
        The backoff for a retry, or None to stop.

    Raises:
        ValueError: *strategy* is of another kind, such as Smithy's; *attempt* is out of
            range, *content* is not bytes, or is given beside a *cause*; or the strategy
            returns something other than a backoff, a decision or None.

    >>> import asyncio
    >>> asyncio.run(ask(RetryStrategy.failsafe(Backoff.fixed(1.0)), status=503))
    Backoff.fixed(1.0)
    >>> asyncio.run(ask(RetryStrategy.failsafe(), status=503, method="POST"))
    """
    if not isinstance(strategy, _KINDS):
        expected = "a RetryStrategy or a RetryStrategyWithContent"
        expected += call_it(strategy, *_KINDS)
        raise bad_argument("strategy", strategy, expected)
    request = HttpRequest(method, "http://localhost/")
    if type(attempt) is not int or attempt < 1:
        raise bad_argument("attempt", attempt, "an integer >= 1")
    if content is not None and (cause is not None or not isinstance(content, bytes)):
        raise bad_argument("content", content, "bytes, or None where there is a cause")
    root = CallContext(request, asyncio.get_running_loop(), None, CallDefaults())
    *_, ctx = [root.derive(request) for _ in range(attempt)]
    if cause is None:
        content = b"" if content is None else content
        status = 200 if status is None else status
        response = new_response(request, status, headers=headers, body=content)
        record_result(ctx, response)
    else:
        record_error(ctx, cause)
    if isinstance(strategy, RetryStrategyWithContent):
        start = content and content[: strategy.max_content_length]
        answer = strategy.should_retry(ctx, cause, start)
    else:
        answer = strategy.should_retry(ctx, cause)
    answer = await answer if isinstance(answer, Awaitable) else answer
    return RetryDecision.of(answer).backoff
