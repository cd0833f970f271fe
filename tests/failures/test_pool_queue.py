"""Time limits that passed in the queue of the session's connection pool."""

from __future__ import annotations

import aiohttp

from aioretry_smithy import ResponseTimeoutError
from aioretry_smithy._failures.failure import (
    copy_marks,
    failure_of,
    judge,
    note_wait_in_pool,
    was_in_pool,
    where_passed,
)


def test_text_of_aiohttp_is_replaced_once():
    """It names the server, which had no part in it."""
    cause = aiohttp.ConnectionTimeoutError("Connection timeout to host http://a/")
    note_wait_in_pool(cause)
    note_wait_in_pool(cause)

    assert "no free connection in the pool in time, for http://a/" == str(cause)
    assert "pool" == failure_of(cause).queue


def test_words_that_somebody_chose_stay():
    """Only aiohttp's own texts are replaced."""
    cause = TimeoutError("mine")
    other = aiohttp.ConnectionTimeoutError("other words")
    note_wait_in_pool(cause)
    note_wait_in_pool(other)

    assert "mine" == str(cause)
    assert "other words" == str(other)
    assert "in the pool's queue" == where_passed(cause)


def test_queue_of_a_limit_is_another_one():
    """It has words of its own."""
    cause = TimeoutError()
    judge(cause).queue = "limit"

    assert "limit" == failure_of(cause).queue
    assert not was_in_pool(cause)
    assert "" == where_passed(cause)
    assert not was_in_pool(None)


def test_error_that_stands_for_it_says_the_same():
    """A deadline that is named in its place was in the same queue."""
    cause, error = TimeoutError(), ResponseTimeoutError()
    note_wait_in_pool(cause)
    copy_marks(error, cause)

    assert was_in_pool(error)
