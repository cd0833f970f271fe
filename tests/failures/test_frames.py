"""Reading the frames of a failure."""

from __future__ import annotations

from aioretry_smithy._failures.frames import REQUEST, Trace


def test_failure_that_is_its_own_cause_came_from_nowhere():
    """A chain without an end is not followed for ever."""
    cause = TimeoutError()
    cause.__cause__ = cause

    assert False is Trace(cause).has(REQUEST)
