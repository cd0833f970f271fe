"""Add the headers by which the AWS SDKs tell a server of retries."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from .._call.client import DecoratingClient, HttpClient

if TYPE_CHECKING:
    import aiohttp

    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .config import RetryConfig

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
        """Send *request* with the headers."""
        attributes = ctx.attributes
        if _ID not in attributes:
            attributes[_ID] = str(uuid4())
        headers = request.headers
        headers.setdefault(_ID, attributes[_ID])
        headers[_REQUEST] = _request_header(ctx)
        return await self.delegate.execute(ctx, request.replace(headers=headers))


def _request_header(ctx: ClientRequestContext) -> str:
    attempt = ctx.attempt or 1
    parts, most = [f"attempt={attempt}"], _most_attempts(ctx.root._retry_config)
    # A decorator outside may call again, and count beyond the limit.
    if most is not None and most >= attempt:
        parts.append(f"max={most}")
    deadline, root = ctx.deadline, ctx.log.root
    if deadline is not None and deadline - root.started < _FOR_EVER:
        ends = root.request_started_at + timedelta(seconds=deadline - root.started)
        # A server that honours a second rounded down would give up too early.
        ends += timedelta(seconds=1, microseconds=-1)
        parts.append(f"ttl={ends:%Y%m%dT%H%M%SZ}")
    return "; ".join(parts)


def _most_attempts(config: RetryConfig | None) -> int | None:
    if config is None:
        return None
    own = getattr(config.strategy, "max_attempts", None)
    limit = config.max_total_attempts
    return min(own, limit) if isinstance(own, int) else limit
