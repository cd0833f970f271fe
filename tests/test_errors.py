"""Classes of errors, and their texts."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from aioretry_smithy import (
    CircuitBreaker,
    FailFastError,
    ResponseTimeoutError,
    UnprocessedRequestError,
)
from aioretry_smithy._errors import bad_argument, is_finite


@pytest.mark.parametrize(
    "error", [UnprocessedRequestError, FailFastError, ResponseTimeoutError]
)
def test_errors_are_those_of_aiohttp(error):
    """``except aiohttp.ClientError`` around existing code goes on working."""
    assert issubclass(error, aiohttp.ClientError)


def test_the_deadline_is_a_timeout():
    """``except asyncio.TimeoutError`` around existing code goes on working."""
    assert issubclass(ResponseTimeoutError, asyncio.TimeoutError)
    assert issubclass(ResponseTimeoutError, aiohttp.ServerTimeoutError)


@pytest.mark.parametrize(
    ("retry_in", "message"),
    [
        (None, "circuit breaker 'shop' is open"),
        (2.5, "circuit breaker 'shop' is open, next trial in 2.500 s"),
        (0.0, "circuit breaker 'shop' is open, next trial in 0.000 s"),
    ],
)
def test_an_open_circuit_says_when_it_may_be_tried(retry_in, message):
    """The error names the circuit and when to come back."""
    breaker = CircuitBreaker("shop")
    error = FailFastError(breaker, retry_in)

    assert message == str(error)
    assert breaker is error.circuit_breaker
    assert retry_in == error.retry_in


def test_bad_arguments_have_one_form():
    """Name, value and condition stand where they always stand."""
    error = bad_argument("delay", "1", "a number")

    assert isinstance(error, ValueError)
    assert "delay: '1' (expected: a number)" == str(error)


@pytest.mark.parametrize(
    ("value", "finite"),
    [
        (0, True),
        (-1.5, True),
        (1e308, True),
        (10**400, False),
        (float("inf"), False),
        (float("nan"), False),
        (True, False),
        ("1", False),
        (None, False),
    ],
)
def test_finite_numbers_are_told_from_the_rest(value, finite):
    """Any argument gets an answer without an error."""
    assert finite is is_finite(value)
