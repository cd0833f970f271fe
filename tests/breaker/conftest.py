"""Fixtures that the tests of circuit breakers share."""

import pytest

from aioretry_smithy import CircuitBreaker


@pytest.fixture
def breaker():
    """A circuit breaker that opens at the first failure, for 10 seconds."""
    return CircuitBreaker("orders", minimum_request_threshold=1)
