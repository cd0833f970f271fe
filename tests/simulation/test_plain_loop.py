"""The loops that chains are compared with: they are what they stand for."""

from __future__ import annotations

from functools import partial

import pytest
from chains import retrying

from aioretry_smithy import Backoff, RetryStrategy, SessionBuilder
from aioretry_smithy.testing import simulate


def plain_retries():
    """Make the chain that the loop stands for."""
    backoff = Backoff.exponential(0.1, 20.0).with_full_jitter()
    return (
        SessionBuilder()
        .decorator(
            retrying(
                RetryStrategy.failsafe(backoff),
                max_total_attempts=4,
                attempt_timeout=1.0,
            )
        )
        .response_timeout(30.0)
    )


def no_retries():
    """Make a chain that sends each request once."""
    return SessionBuilder().response_timeout(1.0)


@pytest.mark.parametrize("error_rate", [0.0, 0.3], ids=["timeouts", "errors"])
def test_loops_do_what_real_chains_do(error_rate):
    """Each of their counts is that of sessions with the same calls, in each second."""
    run = partial(
        simulate,
        clients=3,
        rate=20.0,
        capacity=25.0,
        outage="5:5:0.2",
        duration=20.0,
        error_rate=error_rate,
    )
    chains = {"plain retries": plain_retries, "no retries": no_retries}
    loops, sessions = run().runs, run(chains).runs

    assert chains.keys() < loops.keys()
    assert sessions == {name: loops[name] for name in chains}
