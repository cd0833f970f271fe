"""Fixtures that the tests of circuit breakers share."""

import pytest
from chains import Clock
from circuits import Diary, fail

from aioretry_smithy import CircuitBreaker, CircuitState


@pytest.fixture
def breaker():
    """A circuit breaker that opens at the first failure, for 10 seconds."""
    return CircuitBreaker("orders", minimum_request_threshold=1)


@pytest.fixture
def clock():
    """A clock that stands still until the test moves it."""
    return Clock(1000.0)


@pytest.fixture
def diary():
    """A listener that notes everything."""
    return Diary()


@pytest.fixture
def opened(breaker, diary):
    """The circuit breaker, just opened by failures."""
    fail(breaker, 4)
    diary.entries.clear()
    assert CircuitState.OPEN is breaker.state
    return breaker
