"""Functions that answer in turn, and their decorators."""

from __future__ import annotations

import asyncio
from typing import Any

from aioretry_smithy import Backoff, RetryingRpcClient, RetryRule, rpc


def lookups(*outcomes: Any, seconds: float = 0.25) -> Any:
    """Make a function that raises or returns each of the outcomes in turn."""
    pending = iter(outcomes)

    async def fetch() -> Any:
        await asyncio.sleep(seconds)
        outcome = next(pending)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return fetch


def observed(telemetry: Any, *inside: Any, name: str = "fetch", **settings: Any) -> Any:
    """Decorate with telemetry in both places around a retrying client."""
    rule = RetryRule(exceptions=[LookupError], backoff=Backoff.fixed(1.0))
    retry = RetryingRpcClient.new_decorator(rule, **settings)
    return rpc(*inside, telemetry, retry, telemetry, name=name)
