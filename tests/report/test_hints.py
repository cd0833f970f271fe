"""What numbers suggest to change."""

from __future__ import annotations

import pytest
from made_lines import answers_of, call, failed, sent

TIMEOUT = failed("AttemptTimeoutError")
AGAIN = {"delay": 0.1, "delay_source": "backoff"}
LATER = {"delay": 5.0, "delay_source": "retry_after"}
LOST = {"superseded": True, "is_success": True}


def hints_of(*lines):
    return {hint["hint"]: hint for hint in answers_of(*lines)["hints"]}


def times(number, line):
    return [line] * number


def waits(**seconds):
    return {"queued": None, "dns": None, "connect": None, "reused": True, **seconds}


def test_calls_that_are_well_get_none():
    """Nor do a few that are not."""
    failures = [call(**failed("E"), stop_reason="deadline"), call(status=503)]
    hedged = call(sent(0, 0.2, **LOST), sent(0.1, 0.1, is_hedge=True), took=0.2)

    assert {} == hints_of(*times(200, call()), *failures, hedged)


def test_a_pool_that_is_too_small():
    """The slowest calls waited for a connection of it."""
    queued = call(sent(0, 2.0, connection=waits(queued=1.5)), took=2.0)
    hint = hints_of(*times(90, call()), *times(10, queued))["pool_too_small"]

    assert "75 % of the time of the slowest calls" in hint["said"]
    assert "TCPConnector(limit=" in hint["setting"]
    assert {"slowest_share": 0.75} == hint["figures"]


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (429, {}, True),
        (503, {"retry-after": "5"}, True),
        (503, {}, False),
        (500, {"Retry-After": "5"}, False),
        (503, None, False),
    ],
)
def test_throttling(status, headers, expected):
    """Answers that say when to come back, by host."""
    throttled = call(
        sent(0, 0.1, status, response_headers=headers, **LATER), sent(5.1), took=5.2
    )
    hints = hints_of(*times(90, call()), *times(10, throttled))

    assert expected is ("throttled" in hints)
    if expected:
        hint = hints["throttled"]
        assert ("shop.example.com", 10) == (hint["where"], hint["figures"]["throttled"])
        assert "RateLimit.from_headers()" in hint["setting"]


def test_hosts_without_end():
    """The rarest are put together, and get no hint."""
    later = [
        call(sent(0, 0.1, 429, request_url=f"http://h{n}/"), status=429)
        for n in range(70)
    ]
    cut = [
        call(sent(0, 1.0, request_url=f"http://t{n}/", **TIMEOUT), **TIMEOUT)
        for n in range(70)
    ]

    assert "throttled" not in hints_of(*later, *cut)


def test_timeouts_of_attempts_that_are_too_short():
    """Many answers came just in time."""
    late = call(sent(0, 1.0, response_timeout=1.0, **TIMEOUT), took=1.0, **TIMEOUT)
    near = call(sent(0, 0.9, response_timeout=1.0), took=0.9)
    hint = hints_of(*times(10, late), *times(5, near))["attempt_timeout_too_short"]

    assert {"timeouts": 10, "near": 5, "attempt_timeout": 1.0} == hint["figures"]
    assert "attempt_timeout_too_short" not in hints_of(
        *times(30, late), *times(5, near)
    )


def test_no_timeout_for_attempts():
    """A few calls take very long, and nothing ends them."""
    slow = times(5, call(took=30.0))

    assert "no_attempt_timeout" in hints_of(*times(200, call()), *slow)
    limited = call(sent(0, 0.1, response_timeout=60.0))
    assert "no_attempt_timeout" not in hints_of(*times(200, limited), *slow)
    assert "no_attempt_timeout" not in hints_of(*times(20, call()), *slow)


def test_deadlines_that_are_too_short():
    """Attempts that ran into their timeouts did not fit in."""
    cut = call(sent(0, 1.0, **TIMEOUT), took=1.0, **failed("E"), stop_reason="deadline")

    assert 5 == hints_of(*times(5, cut))["deadline_too_short"]["figures"]["calls"]


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("retry_after_too_long", "retry_after_too_long"),
        ("body_not_replayable", "body_not_replayable"),
        ("limiter", "budget_used_up"),
        ("refused", "refused_here"),
    ],
)
def test_reasons_to_stop(reason, hint):
    """Some of them name a setting."""
    stopped = call(status=503, stop_reason=reason)

    assert 5 == hints_of(*times(5, stopped))[hint]["figures"]["calls"]
    assert hint not in hints_of(*times(4, stopped))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"request_method": "PUT"}, False),
        ({"request_method": None}, False),
        ({"sent": True}, False),
        ({"stop_reason": "limiter"}, False),
        ({"response_cause_type": "FailFastError"}, False),
    ],
)
def test_requests_that_never_went_out(changes, expected):
    """A POST that nobody has seen may be sent again."""
    lost = call(
        **{
            "sent": False,
            "request_method": "POST",
            **failed("ClientConnectorError"),
            "stop_reason": "no_retry",
            **changes,
        }
    )

    assert expected is ("unsent_not_retried" in hints_of(*times(5, lost)))


def hedged(hedge_wins):
    first, second = (LOST, {}) if hedge_wins else ({}, LOST)
    return call(sent(0, 0.2, **first), sent(0.1, 0.1, is_hedge=True, **second))


def test_hedges():
    """Those that hardly ever win, and those that mostly do."""
    rare = hints_of(*times(30, hedged(False)))
    frequent = hints_of(*times(30, hedged(True)))

    assert 0.0 == rare["hedges_rarely_win"]["figures"]["won"]
    assert 1.0 == frequent["hedges_mostly_win"]["figures"]["won"]
    fair = [*times(20, hedged(False)), *times(10, hedged(True))]
    assert not {"hedges_rarely_win", "hedges_mostly_win"} & {*hints_of(*fair)}


def test_endpoints_that_fail_more_than_the_others():
    """Three times as often."""
    good = call(sent(endpoint="eu:443"))
    bad = call(sent(0, 0.1, 503, endpoint="us:443"), status=503)
    hint = hints_of(*times(95, good), *times(5, bad))["endpoint_fails"]

    assert ("us:443", 1.0) == (hint["where"], hint["figures"]["failures"])
    assert "endpoint_fails" not in hints_of(*times(9, good), *times(5, bad))


def test_connections_that_are_not_kept():
    """Each request opens one, and that takes long."""
    opened = call(sent(connection=waits(connect=0.05, reused=False)))

    assert "connections_not_kept" in hints_of(*times(20, opened))
    reused = call(sent(connection=waits()))
    assert "connections_not_kept" not in hints_of(*times(20, reused))


def test_slow_names():
    """DNS takes a good part of the time."""
    slow = call(sent(connection=waits(dns=0.05, reused=False)))

    assert "ttl_dns_cache" in hints_of(*times(20, slow))["slow_dns"]["setting"]


def test_storms_and_retries_in_vain():
    """Retries load a server that is in trouble, and do not help."""
    lost = call(sent(0, 0.1, 503, **AGAIN), sent(0.2, 0.1, 503), took=0.3, status=503)
    hints = hints_of(*times(30, lost))

    assert 0.5 == hints["retry_storm"]["figures"]["retry_share"]
    assert {"retried": 30, "rescued": 0.0} == hints["retries_in_vain"]["figures"]


def test_waits_that_are_longer_than_needed():
    """The first retry nearly always succeeds."""
    late = {"delay": 3.0, "delay_source": "backoff"}
    rescued = call(sent(0, 0.1, 503, **late), sent(3.1), took=3.2)
    hint = hints_of(*times(30, rescued))["long_backoff"]

    assert 1.0 == hint["figures"]["rescued"]


def test_bodies_that_nobody_knows_of():
    """The lines were written at the headers."""
    hint = hints_of(*times(5, call(is_complete=False)))["bodies_unknown"]

    assert 'log_after="body"' in hint["setting"]
