"""Name the attempt and its deadline in headers, as the SDKs of AWS do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from .._call.recorder import record_failure
from .._context.client import DecoratingClient, HttpClient

if TYPE_CHECKING:
    import aiohttp

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest


_ID: Final = "amz-sdk-invocation-id"
_REQUEST: Final = "amz-sdk-request"
_FOR_EVER: Final = 1e9
"""Seconds; a deadline farther away counts as none."""


def sdk_headers(delegate: HttpClient) -> HttpClient:
    """Tell the server which attempt of which call a request is, as the AWS SDKs do.

    A decorator, for inside the retrying client. Each attempt has two headers:

    ``amz-sdk-invocation-id``
        A UUID, the same for all attempts of a call; the caller's own one stays.
    ``amz-sdk-request``
        ``attempt=2; max=3; ttl=20261122T040000Z``: the number of the attempt, from 1;
        with a retrying client, its limit of attempts; and, with a deadline, the second
        in UTC by which the attempt is over, rounded up.

    The time is from this machine's clock; the server's clock is not considered.

    Args:
        delegate: The next client inwards.

    Source: the SDKs' retry behaviour, and smithy-python.

    >>> builder = (
    ...     SessionBuilder("https://service.example.com")
    ...     .decorator(sdk_headers)
    ...     .decorator(RetryingClient.new_decorator(StandardRetryStrategy()))
    ... )
    """
    return SdkHeadersClient(delegate)


class SdkHeadersClient(DecoratingClient):
    """Adds the headers of :func:`sdk_headers`."""

    _serves = "sessions"

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send the request with the headers."""
        try:
            request = _with_headers(ctx, request)
        except BaseException as cause:
            record_failure(ctx, cause)
            raise
        return await self.delegate.execute(ctx, request)


def _with_headers(ctx: ClientRequestContext, request: HttpRequest) -> HttpRequest:
    attributes, headers = ctx.attributes, request.headers
    if _ID not in attributes:
        attributes[_ID] = str(uuid4())
    headers.setdefault(_ID, attributes[_ID])
    headers[_REQUEST] = _request_header(ctx)
    return request.replace(headers=headers)


def _request_header(ctx: ClientRequestContext) -> str:
    call, attempt, most = ctx.call, ctx.attempt or 1, None
    parts, config = [f"attempt={attempt}"], call.retry_config
    if config is not None:
        most = config.max_total_attempts
        own = getattr(config.strategy, "max_attempts", most)
        most = min(own, most) if isinstance(own, int) else most
        most = 1 if call.defaults.no_retries else most
    # A decorator outside may call again, and count beyond the limit.
    if most is not None and most >= attempt:
        parts.append(f"max={most}")
    deadline = ctx.deadline
    if deadline is not None and deadline - call.started < _FOR_EVER:
        ends = datetime.fromtimestamp(call.wall_clock, UTC)
        ends += timedelta(seconds=deadline - call.started)
        # A server that honours a second rounded down would give up too early.
        ends += timedelta(seconds=1, microseconds=-1)
        parts.append(f"ttl={ends:%Y%m%dT%H%M%SZ}")
    return "; ".join(parts)
