"""Waits for what several servers ask for, each of itself."""

from __future__ import annotations

import pytest
from balanced import Fleet, call, group_of
from chains import after, now, retrying
from raised import raised
from retrying_clients import delays, logged

from aioretry_smithy import Backoff, OutlierDetection, RetryingClient, smithy


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

    async def test_one_that_no_longer_says_so_is_asked(self, detection):
        """After the backoff, as ever."""
        fleet = Fleet(a=[resting(40), 200], b=[resting(2), 500, 200])
        group = group_of("ab", outlier_detection=detection)
        _, log, asked = await logged(fleet, group, retrying(0.5))

        assert "abbb" == asked
        assert [(0.5, "backoff"), (2.0, "retry_after"), (0.5, "backoff")] == delays(log)

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
