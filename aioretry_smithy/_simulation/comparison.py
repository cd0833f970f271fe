"""Make the chains that others are compared with."""

from __future__ import annotations

from .._retry.backoff import Backoff
from .._retry.client import RetryingClient
from .._retry.strategy import RetryStrategy
from .._session.builder import SessionBuilder

_PATIENCE = 1.0
"""Seconds that each of them waits for an answer."""


def standard_chain() -> SessionBuilder:
    """Make the standard chain."""
    return SessionBuilder.standard(attempt_timeout=_PATIENCE, logging=None)


def plain_retries() -> SessionBuilder:
    """Make up to three retries, with full jitter and without a budget."""
    backoff = Backoff.exponential(0.1, 20.0).with_full_jitter()
    retrying = RetryingClient.new_decorator(
        RetryStrategy.failsafe(backoff),
        max_total_attempts=4,
        attempt_timeout=_PATIENCE,
    )
    return SessionBuilder().decorator(retrying).response_timeout(30.0)


def no_retries() -> SessionBuilder:
    """Send each request once."""
    return SessionBuilder().response_timeout(_PATIENCE)
