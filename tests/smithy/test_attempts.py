"""The limit of attempts."""

import math

import pytest

from aioretry_smithy.smithy.attempts import check_max_attempts, next_retry_count
from aioretry_smithy.smithy.errors import CallError, RetryError
from aioretry_smithy.smithy.tokens import SimpleRetryToken

ERROR = CallError("503", fault="server")


def test_next_token_counts_one_retry_more():
    """Up to the last attempt that there may be."""
    token = SimpleRetryToken(retry_count=1, retry_delay=0.0)

    assert 2 == next_retry_count(token, ERROR, 3)


def test_attempts_have_an_end():
    """Two attempts are made, and there may be two."""
    token = SimpleRetryToken(retry_count=1, retry_delay=0.0)
    with pytest.raises(RetryError, match=r"^all attempts are made: 2$") as caught:
        next_retry_count(token, ERROR, 2)

    assert ERROR is caught.value.__cause__


def test_error_comes_before_the_attempts():
    """Where both end the call, the error is the reason."""
    token = SimpleRetryToken(retry_count=1, retry_delay=0.0)
    error = CallError("404", fault="client")
    with pytest.raises(RetryError, match=r"^the error allows no retry") as caught:
        next_retry_count(token, error, 2)

    assert error is caught.value.__cause__


@pytest.mark.parametrize("value", [0, -1, True, 3.0, "3", None, math.inf])
def test_number_of_attempts_is_an_int_above_0(value):
    """Anything else is named."""
    with pytest.raises(ValueError) as caught:
        check_max_attempts(value)

    assert f"max_attempts: {value!r} (expected: an int >= 1)" == str(caught.value)
