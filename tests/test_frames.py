"""What is read from the frames of a failure."""

from __future__ import annotations

import pytest

from aioretry_smithy._frames import was_queued, was_redirected


@pytest.mark.parametrize("question", [was_queued, was_redirected])
def test_failure_that_is_its_own_cause_is_answered_too(question):
    """A chain without an end is not followed for ever."""
    cause = TimeoutError()
    cause.__cause__ = cause

    assert False is question(cause)


def test_context_says_nothing():
    """That may be the failure of an earlier request, which went elsewhere."""
    code = compile(
        "def _wait_for_available_connection(): raise KeyError", "connector", "exec"
    )
    module = {"__name__": "aiohttp.connector"}
    exec(code, module)
    with pytest.raises(KeyError) as earlier:
        module["_wait_for_available_connection"]()
    later = TimeoutError()
    later.__context__ = earlier.value

    assert was_queued(earlier.value)
    assert not was_queued(later)
