"""Strategies of ones own that judge endpoints, and listeners."""

from __future__ import annotations

import asyncio

import pytest
from balanced import Fleet, at, call, group_of, out, state_of
from chains import SAFELY, pass_on, refused, retrying

from aioretry_smithy import (
    CircuitBreakerStrategy,
    EndpointGroupListener,
    OutlierDetection,
)

pytestmark = pytest.mark.usefixtures("shortest_ejections")


class Judge(CircuitBreakerStrategy):
    """A user's own strategy, which gives one verdict."""

    def __init__(self, verdict):
        self.verdict = verdict

    def should_report_as_success(self, ctx, cause):
        self.endpoint = ctx.endpoint
        if isinstance(self.verdict, BaseException):
            raise self.verdict
        return self.verdict


class AsyncJudge(Judge):
    """One that takes its time."""

    async def should_report_as_success(self, ctx, cause):
        await asyncio.sleep(1.0)
        return super().should_report_as_success(ctx, cause)


def judged(verdict, kind=Judge, names="ab"):
    """Make a group whose first failure ejects."""
    detection = OutlierDetection(consecutive_failures=1, strategy=kind(verdict))
    return group_of(names, outlier_detection=detection)


class TestStrategy:
    """What a failure is, as users say."""

    @pytest.mark.parametrize("kind", [Judge, AsyncJudge])
    @pytest.mark.parametrize("verdict", ["rubbish", 1])
    async def test_rubbish_is_refused(self, kind, verdict):
        """To the caller, never retried; the response is closed."""
        fleet = Fleet()
        group = judged(verdict, kind)
        async with fleet.session(group, retrying(SAFELY)) as client:
            error, log = await call(client)

        assert isinstance(error, ValueError)
        assert str(error).startswith("should_report_as_success: ")
        assert ("a", 1, 0) == (
            fleet.text,
            log.total_attempts,
            state_of(group, "a").in_flight,
        )

    @pytest.mark.parametrize("kind", [Judge, AsyncJudge])
    async def test_what_it_raises_of_a_trial_is_no_information(self, kind):
        """The next request is the trial."""
        group = judged(False, kind)
        fleet = Fleet()
        strategy = group._detection.strategy
        async with fleet.session(group) as client:
            await call(client)
            strategy.verdict = ZeroDivisionError()
            await at(7.0)
            await call(client)
            strategy.verdict = True
            await call(client)

        assert ("aaa", {}) == (fleet.text, out(group))

    async def test_cancelled_meanwhile(self):
        """At its await: in flight ends, a trial is given up, the response is closed."""
        group = judged(False, AsyncJudge)
        fleet = Fleet()
        async with fleet.session(group, pass_on) as client:
            await call(client)
            await at(9.0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await client.get("/orders")
            strategy = group._detection.strategy
            strategy.verdict = True
            await call(client)

        assert ("aaa", {}) == (fleet.text, out(group))
        assert 0 == state_of(group, "a").in_flight


async def test_listener_may_use_the_group():
    """Case 92: it sees what has changed already."""
    seen = []

    class Looking(EndpointGroupListener):
        def on_ejected(self, group, endpoint, reason, until):
            seen.append((reason, until, group.states[endpoint].ejected_until))

        def on_returned(self, group, endpoint):
            seen.append(group.states[endpoint].ejected_until)

    fleet = Fleet(a=[refused(), 200])
    async with fleet.session(group_of("ab", listener=Looking())) as client:
        await call(client)
        await at(5.0)
        await call(client)

    assert [("connect_failures", 5.0, 5.0), None] == seen
