"""Waits for as long as the server asks, and their place in the log."""

from __future__ import annotations

import asyncio

import pytest
from chains import (
    SAFELY,
    Always,
    log_of,
    log_of_cancelled,
    now,
    retrying,
    session,
)

from aioretry_smithy import Backoff, RetryStopReason


def answered_with(status, **headers):
    """Answer with a status and headers, underscores for hyphens."""
    return status, {name.replace("_", "-"): text for name, text in headers.items()}, b""


class TestRetryAfter:
    """Server hints: a floor for the delay, and a reason to stop."""

    @pytest.mark.parametrize(
        ("strategy", "hint", "settings", "wait"),
        [
            (0.5, "2", {}, (2.0, "retry_after")),
            (2.0, "2", {}, (2.0, "retry_after")),
            (3.0, "2", {}, (3.0, "backoff")),
            (0.5, "soon", {}, (0.5, "backoff")),
            # Only one longer than the limit ends the call.
            (SAFELY, "5", {"max_retry_after": 5.0}, (5.0, "retry_after")),
            (SAFELY, "99", {"use_retry_after": False}, (0.0, "backoff")),
        ],
    )
    async def test_longer_of_backoff_and_hint_is_waited(
        self, strategy, hint, settings, wait
    ):
        """It never fires early and never shortens the backoff; it can be ignored."""
        answers = [answered_with(503, Retry_After=hint), 200]
        log = await log_of(session(answers, retrying(strategy, **settings)))

        first = log.children[0]
        assert wait == (first.delay, first.delay_source)
        assert (200, wait[0]) == (log.response_status, now())

    @pytest.mark.parametrize(
        ("hint", "settings", "deadline"),
        [
            ("61", {}, None),
            ("6", {"max_retry_after": 5.0}, None),
            ("10", {}, 10.0),
            ("99999999999", {"max_retry_after": None}, None),
        ],
    )
    async def test_hint_that_is_too_long_stops_with_that_response(
        self, hint, settings, deadline
    ):
        """Longer than the settings or the deadline allow: no use waiting."""
        answers = [answered_with(429, Retry_After=hint)]
        decorator = retrying(SAFELY, **settings)
        log = await log_of(session(answers, decorator, timeout=deadline))

        assert (429, 0.0) == (log.response_status, now())
        assert RetryStopReason.RETRY_AFTER_TOO_LONG == log.stop_reason

    @pytest.mark.parametrize(
        ("year", "reason"), [(1994, None), (9999, RetryStopReason.RETRY_AFTER_TOO_LONG)]
    )
    async def test_date_is_taken_against_our_clock_where_the_server_sends_none(
        self, year, reason
    ):
        """A date that is over holds nobody back, one far away ends the call."""
        date = f"Sun, 06 Nov {year} 08:49:37 GMT"
        answers = [answered_with(503, Retry_After=date), 200]
        log = await log_of(session(answers, retrying(SAFELY)))

        assert reason == log.stop_reason


async def test_wait_that_was_cancelled_shows_what_was_really_waited():
    """The log adds up: 0.5 s of the 3 s that were planned."""
    await asyncio.sleep(1.0)
    slow = retrying(Always(Backoff.fixed(3.0)))
    log = await log_of_cancelled(session([503], slow), 0.5)

    assert (0.5, 0.5) == (log.duration, log.children[0].delay)
