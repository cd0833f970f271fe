"""Fixtures that the tests of circuit breakers share."""

import pytest
from chains import Clock

from aioretry_smithy import CircuitBreaker


@pytest.fixture
def breaker():
    """A circuit breaker that opens at the first failure, for 10 seconds."""
    return CircuitBreaker("orders", minimum_request_threshold=1)


@pytest.fixture
def clock():
    """A clock that stands still until the test moves it."""
    return Clock(1000.0)
