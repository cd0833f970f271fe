"""The wait for the next attempt: never shorter than asked, never longer than left."""

import asyncio
import math
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from balanced import Fleet, call, group_of
from calls import raised
from chains import (
    SAFELY,
    URL,
    Always,
    after,
    chain,
    log_of,
    log_of_cancelled,
    now,
    retrying,
    session,
)
from functions import delays, logged
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from aioretry_smithy import (
    Backoff,
    OutlierDetection,
    RetryConfig,
    RetryingClient,
    RetryLimiter,
    RetryStopReason,
    RetryStrategy,
    client_decorator,
    smithy,
)
from aioretry_smithy._retry.wait import Stop, Wait, plan_wait

seconds = st.floats(min_value=0.0, max_value=1e6)
limits = st.none() | seconds


def plan(delay, hint, remaining, longest=60.0, drawn=0.0):
    config = RetryConfig(RetryStrategy.never(), max_retry_after=longest)
    wait = Wait(delay, "backoff")
    with patch("aioretry_smithy._retry.wait.chance", lambda: drawn):
        return plan_wait(wait, hint, remaining, config)


@pytest.mark.parametrize(
    ("delay", "hint", "remaining", "expected"),
    [
        (1.0, 0.0, math.inf, Wait(1.0, "backoff")),
        (0.0, 0.0, 1.0, Wait(0.0, "backoff")),
        (1.0, 2.0, math.inf, Wait(2.0, "retry_after")),
        (2.0, 2.0, math.inf, Wait(2.0, "retry_after")),
        (3.0, 2.0, math.inf, Wait(3.0, "backoff")),
        (1.0, 0.0, 1.0, Stop(RetryStopReason.DEADLINE)),
        (1.0, 5.0, 4.0, Stop(RetryStopReason.RETRY_AFTER_TOO_LONG)),
        (5.0, 4.0, 4.0, Stop(RetryStopReason.DEADLINE)),
        (4.0, 2.0, 4.0, Stop(RetryStopReason.DEADLINE)),
        (1.0, 4.0, 4.0, Stop(RetryStopReason.RETRY_AFTER_TOO_LONG)),
        (1.0, 60.0, math.inf, Wait(60.0, "retry_after")),
        (1.0, 60.1, math.inf, Stop(RetryStopReason.RETRY_AFTER_TOO_LONG)),
    ],
)
def test_wait_is_planned(delay, hint, remaining, expected):
    """The longer of backoff and hint is waited for, where time and patience last."""
    assert expected == plan(delay, hint, remaining)


def test_jitter_that_rounds_up_to_the_end_is_left_out():
    """A wait that fills all the time left would leave none for the attempt."""
    drawn = math.nextafter(1.0, 0.0)

    assert Wait(3.0, "retry_after") == plan(2.0, 3.0, 4.0, drawn=drawn)


def test_endless_hint_is_too_long_for_any_patience():
    """Nobody waits for ever, with ``max_retry_after=None`` either."""
    expected = Stop(RetryStopReason.RETRY_AFTER_TOO_LONG)

    assert expected == plan(0.0, math.inf, math.inf, longest=None)


@given(
    seconds,
    seconds,
    seconds | st.just(math.inf),
    limits,
    st.floats(0.0, 1.0, exclude_max=True),
)
def test_wait_keeps_within_its_bounds(delay, hint, remaining, longest, drawn):
    """Not below the two delays nor above their sum, it fits into what is left."""
    decision = plan(delay, hint, remaining, longest, drawn)

    if isinstance(decision, Wait):
        assert max(delay, hint) <= decision.delay < remaining
        assert delay + hint >= decision.delay
        most = math.inf if longest is None else max(delay, longest)
        assert most >= decision.delay or most == pytest.approx(decision.delay)
    else:
        assert delay >= remaining or hint >= remaining or hint > longest


def answered_with(status, **headers):
    """Answer with a status and headers, underscores for hyphens."""
    return status, {name.replace("_", "-"): text for name, text in headers.items()}, b""


class TestRetryAfter:
    """Server hints: a floor for the delay, and a reason to stop."""

    @pytest.mark.usefixtures("draw")
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


@pytest.mark.parametrize("kind", [dict, CIMultiDict])
@pytest.mark.parametrize(("hint", "wait"), [(3, 3.0), (b"3", 0.0), (None, 0.0)])
async def test_values_of_responses_of_users_may_be_of_any_class(kind, hint, wait):
    """A number is one; what is none is no hint."""

    @client_decorator
    async def answer(delegate, ctx, request):
        status = 200 if ctx.attempt > 1 else 503
        return SimpleNamespace(
            status=status,
            headers=kind({"Retry-After": hint}),
            release=lambda: None,
            close=lambda: None,
        )

    async with chain(answer, retrying(SAFELY)).build() as client:
        assert 200 == (await client.get(URL)).status
    assert wait == now()


class TestJitter:
    """A part of the backoff is added to a hint, by chance."""

    @pytest.mark.parametrize(
        ("drawn", "delay", "hint", "settings", "wait"),
        [
            (0.5, 1.0, "2", {}, (2.5, "retry_after")),
            (0.5, 0.0, "2", {}, (2.0, "retry_after")),
            (0.75, 1.0, "0.5", {}, (1.25, "retry_after")),
            (0.25, 1.0, "0.5", {}, (1.0, "backoff")),
            (0.5, 3.0, "2", {}, (3.5, "retry_after")),
            (0.0, 3.0, "2", {}, (3.0, "backoff")),
            # Only the hint has to fit; what is added is of what is left.
            (0.5, 8.0, "4", {"max_retry_after": 5.0}, (8.0, "backoff")),
            (0.5, 3.0, "4", {"max_retry_after": 5.0}, (4.5, "retry_after")),
            (0.5, 3.0, "5", {"max_retry_after": 5.0}, (5.0, "retry_after")),
            (0.5, 3.0, "2", {"max_retry_after": None}, (3.5, "retry_after")),
            (0.5, 3.0, "9", {"timeout": 10.0}, (9.5, "retry_after")),
            (0.9999, 9.0, "9", {"timeout": 10.0}, (9.9999, "retry_after")),
        ],
    )
    async def test_part_of_the_backoff_is_added(
        self, draw, drawn, delay, hint, settings, wait
    ):
        """The wait is max(delay, hint + random() * delay), where that has room."""
        draw(drawn)
        limits = dict(settings)
        timeout = limits.pop("timeout", None)
        answers = [answered_with(503, Retry_After=hint), 200]
        retries = retrying(delay, **limits)
        log = await log_of(session(answers, retries, timeout=timeout))

        first = log.children[0]
        assert wait == (pytest.approx(first.delay, abs=1e-5), first.delay_source)
        assert (200, None) == (log.response_status, log.stop_reason)

    async def test_part_is_of_the_delay_of_that_attempt(self, draw):
        """It grows as the backoff does."""
        draw(0.5)
        strategy = RetryStrategy.failsafe(Backoff.exponential(1.0))
        answers = [answered_with(429, Retry_After="5")] * 3
        log = await log_of(session([*answers, 200], retrying(strategy)))

        assert [5.5, 6.0, 7.0] == [each.delay for each in log.children[:3]]

    async def test_limiter_that_takes_its_time_leaves_less_to_add(self, draw):
        """The call has its last attempt, and no timeout."""
        draw(0.99)

        class Slow(RetryLimiter):
            async def acquire(self, ctx, cause):
                await asyncio.sleep(1.0)
                return True

        answers = [answered_with(503, Retry_After="2"), 200]
        client = session(answers, retrying(3.0, limiter=Slow()), timeout=4.5)
        log = await log_of(client)

        assert (200, pytest.approx(2 + 0.99 * 1.5, abs=1e-5)) == (
            log.response_status,
            log.children[0].delay,
        )


async def test_wait_that_was_cancelled_shows_what_was_really_waited():
    """The log adds up: 0.5 s of the 3 s that were planned."""
    await asyncio.sleep(1.0)
    slow = retrying(Always(Backoff.fixed(3.0)))
    log = await log_of_cancelled(session([503], slow), 0.5)

    assert (0.5, 0.5) == (log.duration, log.children[0].delay)


def resting(seconds):
    return 503, {"Retry-After": f"{seconds}"}, b""


@pytest.mark.usefixtures("draw")
@pytest.mark.parametrize("detection", [OutlierDetection(), None])
class TestShortestHint:
    """Where all endpoints were tried, the call waits for the first to be asked."""

    @pytest.mark.parametrize(
        ("hints", "waits", "order"),
        [
            ({"a": 4, "b": 30}, [3.5], "aba"),
            ({"a": 30, "b": 4}, [4.0], "abb"),
            # One alone would be too long to wait for.
            ({"a": 2, "b": 120}, [1.5], "aba"),
            ({"a": 120, "b": 2}, [2.0], "abb"),
            ({"a": 30, "b": 4, "c": 9}, [0.5, 3.5], "abcb"),
            ({"a": 0.4001, "b": 30}, [0.5], "aba"),
        ],
    )
    async def test_call_waits_for_the_shortest(self, detection, hints, waits, order):
        """And asks the endpoint that has asked for it."""
        fleet = Fleet(**{each: [resting(hint), 200] for each, hint in hints.items()})
        group = group_of(hints, outlier_detection=detection)
        status, log, asked = await logged(fleet, group, retrying(0.5))

        assert (200, order) == (status, asked)
        assert [0.5, *waits] == [delay for delay, _ in delays(log)]

    async def test_last_answer_of_each_counts(self, detection):
        """One that says so again is waited for again."""
        fleet = Fleet(a=[resting(4), resting(6), 200], b=resting(60))
        group = group_of("ab", outlier_detection=detection)
        _, log, asked = await logged(fleet, group, retrying(0.5))

        assert "abaa" == asked
        assert [0.5, 3.5, 6.0] == [delay for delay, _ in delays(log)]

    @pytest.mark.parametrize("hint", [40, 120])
    async def test_one_that_has_never_said_so_is_asked(self, detection, hint):
        """After the backoff: it may be well again, and the other is left alone."""
        fleet = Fleet(a=[500, 200], b=resting(hint))
        group = group_of("ab", outlier_detection=detection)
        status, log, asked = await logged(fleet, group, retrying(0.5))

        assert (200, "aba") == (status, asked)
        assert [(0.5, "backoff"), (0.5, "backoff")] == delays(log)

    @pytest.mark.parametrize("hints", [(61, 90), (90, 61)])
    async def test_shortest_may_be_too_long(self, detection, hints):
        """By max_retry_after."""
        first, second = map(resting, hints)
        group = group_of("ab", outlier_detection=detection)
        status, log, _ = await logged(Fleet(a=first, b=second), group, retrying(0.25))

        assert (503, "retry_after_too_long") == (status, log.stop_reason)
        assert 0.25 == now()

    async def test_shortest_may_come_after_the_deadline(self, detection):
        """Then there is no use in waiting."""
        group = group_of("ab", outlier_detection=detection)
        fleet = Fleet(a=resting(6), b=resting(30))
        async with fleet.session(group, retrying(0.5), timeout=5.0) as client:
            status, log = await call(client)

        assert (503, "retry_after_too_long", 0.5) == (status, log.stop_reason, now())

    async def test_answers_that_were_raised_count_too(self, detection):
        """By a middleware, say."""
        fleet = Fleet(
            a=[after(0.0, raised(503, {"Retry-After": "4"})), 200],
            b=after(0.0, raised(503, {"Retry-After": "30"})),
        )
        group = group_of("ab", outlier_detection=detection)
        status, log, asked = await logged(fleet, group, retrying(0.5))

        assert (200, "aba") == (status, asked)
        assert [0.5, 3.5] == [delay for delay, _ in delays(log)]

    @pytest.mark.parametrize("hints", [(4, 30), (30, 3.5)])
    async def test_smithy_strategies_wait_for_it(self, detection, hints):
        """Their errors tell the shortest as well."""
        seen = []

        class Telling(smithy.StandardRetryStrategy):
            async def refresh_retry_token_for_retry(self, *, token_to_renew, error):
                seen.append(error.retry_after)
                return await super().refresh_retry_token_for_retry(
                    token_to_renew=token_to_renew, error=error
                )

        half = smithy.from_backoff(Backoff.fixed(0.5))
        strategy = Telling(backoff_strategy=half, throttling_backoff_strategy=half)
        first, second = map(resting, hints)
        fleet = Fleet(a=[first, 200], b=[second, 200])
        group = group_of("ab", outlier_detection=detection)
        status, log, asked = await logged(
            fleet, group, RetryingClient.new_decorator(strategy)
        )

        assert (200, "aba" if hints[0] < hints[1] else "abb") == (status, asked)
        assert [None, 3.5] == seen
        assert [0.5, 3.5] == [delay for delay, _ in delays(log)]
