"""Calls that are counted, and the series that they make."""

from __future__ import annotations

import asyncio

import pytest
from chains import session

from aioretry_smithy import Backoff, RetryingClient, RetryStrategy

pytest.importorskip("prometheus_client")
from aioretry_smithy.prometheus import MetricsClient

HOST = "example.com:80"
RETRYING = RetryingClient.new_decorator(
    RetryStrategy.on_server_error_status(Backoff.fixed(0.5)), max_total_attempts=3
)


def session_of(registry, *answers, around=(RETRYING,), url="http://example.com"):
    """Build a session that is measured on both sides of other decorators."""
    metrics = MetricsClient.new_decorator(registry)
    return session(answers, metrics, *around, metrics, base_url=url)


async def measure(registry, *answers, **settings):
    """Make one call that is measured on both sides, whatever comes of it."""
    async with session_of(registry, *answers, **settings) as client:
        await asyncio.gather(client.get("/"), return_exceptions=True)


def at(*labels):
    return (HOST, "GET", *labels)
