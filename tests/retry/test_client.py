"""The decorator that sends a request again: its settings."""

from __future__ import annotations

import pytest
from chains import Always, raises_exactly, response_of, session

from aioretry_smithy import RetryConfig, RetryingClient, RetryStrategy, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport


def test_settings_beside_a_config_are_refused():
    """One of the two would be ignored."""
    config = RetryConfig(RetryStrategy.never())

    with raises_exactly(
        "settings: {'max_total_attempts': 3} (expected: none beside a RetryConfig)"
    ):
        RetryingClient.new_decorator(config, max_total_attempts=3)


@pytest.mark.parametrize("further", [(5,), (5, 3.0), (5, None)])
def test_attempts_and_their_timeout_may_be_given_by_position(further):
    """As on Armeria's page, ``new_decorator(strategy, 5, 3.0)``; others are named."""
    names = ("max_total_attempts", "attempt_timeout")
    named = dict(zip(names, further, strict=False))
    strategy = RetryStrategy.never()
    by_position, by_name = (
        SessionBuilder().decorator(decorator).describe()
        for decorator in (
            RetryingClient.new_decorator(strategy, *further, use_retry_after=False),
            RetryingClient.new_decorator(strategy, use_retry_after=False, **named),
        )
    )

    assert by_name == by_position
    with pytest.raises(ValueError, match="settings: .* none beside a RetryConfig"):
        RetryingClient.new_decorator(RetryConfig(strategy), *further)


async def test_config_is_taken_whole():
    """A configuration made before serves many clients."""
    config = RetryConfig(Always(), max_total_attempts=3)
    transport = ScriptedTransport([503] * 3)
    await response_of(session(transport, RetryingClient.new_decorator(config)))

    assert 3 == len(transport.requests)
