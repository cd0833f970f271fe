"""Never run: settings with names that are not ours, for the type checkers to see."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from typing import Any

import aiohttp

from aioretry_smithy import (
    ClientRequestContext,
    HttpRequest,
    LoggingClient,
    LoggingRpcClient,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryingRpcClient,
    RetryStrategy,
    SessionBuilder,
)


def key(ctx: ClientRequestContext, request: HttpRequest) -> str:
    """Tell calls apart."""
    return request.method


async def use(connector: aiohttp.BaseConnector, settings: dict[str, Any]) -> None:
    """Write the names of other libraries."""
    never = RetryStrategy.never()
    SessionBuilder.standard(max_attempts=3)  # type: ignore[call-arg]
    SessionBuilder.standard(retries=3)  # type: ignore[call-arg]
    SessionBuilder.standard(attempt_timeout="3")  # type: ignore[arg-type]
    SessionBuilder.standard(strategy=RetryStrategy)  # type: ignore[arg-type]
    LoggingClient.new_decorator(log_after="end")  # type: ignore[arg-type]
    LoggingRpcClient.new_decorator(log_after="body")  # type: ignore[call-arg]
    SessionBuilder(attempt_timeout=3.0)  # type: ignore[call-arg]
    SessionBuilder(tiemout=aiohttp.ClientTimeout())  # type: ignore[call-arg]
    RetryConfig(never, max_attempts=3)  # type: ignore[call-arg]
    RetryConfig.standard(retries=3)  # type: ignore[call-arg]
    RetryConfig.standard(timeout=3.0)  # type: ignore[call-arg]
    RetryingClient.new_decorator(never, max_attempts=3)  # type: ignore[call-arg]
    RetryingRpcClient.new_decorator(never, timeout=3)  # type: ignore[call-arg]
    RetryingClient.new_decorator(RetryStrategy.failsafe)  # type: ignore[arg-type]
    # What is right stays right.
    mapping = RetryConfigMapping.of(key, lambda method: RetryConfig.no_retry())
    RetryingClient.new_decorator(mapping)
    RetryingRpcClient.new_decorator(mapping)
    SessionBuilder(connector=connector, timeout=aiohttp.ClientTimeout(sock_read=5.0))
    SessionBuilder.standard("http://h", headers={"X": "1"}, raise_for_status=True)
    SessionBuilder.standard(**settings)
