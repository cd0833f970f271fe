"""Sources of endpoints that fail, answer with nothing or take long."""

from __future__ import annotations

import asyncio
import math

import pytest
from chains import now
from group_servers import Found, after, found, pass_time, tasks

pytestmark = pytest.mark.usefixtures("no_jitter")


class TestFailures:
    """A query that fails says nothing about the list."""

    async def test_list_that_expired_long_ago_serves_where_the_query_fails(self):
        """It is the best that there is."""
        group = Found(found("a"), OSError("server failure"))
        await group.use()

        assert await group.use(at=500.0) is False
        assert await group.use() is True

    @pytest.mark.parametrize(("drawn", "factor"), [(0.0, 0.8), (0.75, 1.1)])
    async def test_pause_is_scattered(self, monkeypatch, drawn, factor):
        """By 20 %, also the longest one."""
        monkeypatch.setattr(
            "aioretry_smithy._endpoints.discovery.chance", lambda: drawn
        )
        group = Found(OSError())
        for _ in range(9):
            await group.use(at=max(now(), group.discovery.asks_at))

        assert group.times[1] == pytest.approx(factor)
        assert group.times[-1] - group.times[-2] == pytest.approx(32.0 * factor)

    async def test_answer_ends_the_series(self):
        """The next failure is a first one again."""
        group = Found(OSError(), OSError(), found("a"), OSError())
        for at in (0.0, 1.0, 3.0, 13.0):
            await group.use(at=at)

        assert 14.0 == group.discovery.asks_at

    async def test_nobody_asks_before_a_query_is_due(self):
        """Without a list, too."""
        group = Found(OSError("no network"))
        for at in (0.0, 0.5, 0.9):
            assert await group.use(at=at) is False

        assert [0.0] == group.times
        assert -math.inf == group.discovery.due_at

    async def test_query_that_is_cancelled_from_elsewhere_has_failed(self):
        """A resolver may let out the end of something of its own."""
        group = Found(asyncio.CancelledError(), found("a"))
        await group.use()

        assert ["CancelledError('the query was cancelled')"] == group.failures
        assert await group.use(at=1.0) is False
        assert await group.use() is True


class TestEmptyAnswers:
    """A name that stands for nothing may be a mistake of a moment."""

    async def test_answer_between_them_begins_anew(self):
        """Two empty ones in a row are needed."""
        group = Found(found("a"), found(), found("a"), found(), found("a"))
        for at in (0.0, 10.0, 11.0, 21.0, 22.0):
            await group.use(at=at)

        assert [["a"], ["a"], ["a"]] == group.lists

    async def test_failure_between_them_does_not(self):
        """It says nothing."""
        group = Found(found("a"), found(), OSError(), found())
        for at in (0.0, 10.0, 11.0, 12.0):
            await group.use(at=at)

        assert [["a"], []] == group.lists

    async def test_at_the_start_two_are_needed_too(self):
        """Then it is known that there is nothing, and asked again each second."""
        group = Found(found())

        assert await group.use() is False
        assert await group.use(at=0.5) is False
        assert await group.use(at=1.0) is False
        assert [[]] == group.lists
        assert await group.use(at=1.5) is True
        assert await group.use(at=2.0) is True
        assert [0.0, 1.0, 2.0] == group.times

    async def test_list_that_expired_long_ago_waits_for_the_second(self):
        """The first one was no failure."""
        group = Found(found("a"), found())
        await group.use()
        await group.use(at=100.0)

        assert await group.use(at=100.5) is False
        await group.wait()

        assert 101.0 == now()
        assert [["a"], []] == group.lists


class TestTakesLong:
    """A query has five seconds."""

    async def test_counts_as_failed_after_five_seconds(self):
        """It is cancelled, and the next one comes after the pause."""
        group = Found(after(math.inf, None), found("a"))
        await group.use()
        await group.use(at=4.9)

        assert 1 == len(tasks())
        await pass_time(0.2)

        assert ["TimeoutError('no answer within 5 s')"] == group.failures
        assert set() == tasks()
        assert 6.0 == group.discovery.asks_at
        await group.use(at=6.0)

        assert [["a"]] == group.lists

    async def test_one_that_resists_is_left_alone(self):
        """Another one begins, and its answer counts alone."""

        async def resist():
            for _ in range(2):
                try:
                    await asyncio.sleep(10.0)
                except asyncio.CancelledError:
                    continue
            return found("late")

        group = Found(resist, found("a"))
        await group.use()
        await group.use(at=6.0)
        await pass_time(20.0)

        assert [["a"]] == group.lists

    async def test_nothing_is_asked_beside_one_that_cannot_be_cut(self):
        """It counts as failed once; its late answer counts."""
        group = Found(found("a"), after(50.0, found("b")), is_cancellable=False)
        await group.use()
        await group.use(at=10.0)

        assert await group.use(at=16.0) is True
        assert await group.use(at=30.0) is True
        assert ["TimeoutError('no answer within 5 s')"] == group.failures
        assert await group.use(at=60.0) is True
        assert [["a"], ["b"]] == group.lists
        assert [0.0, 10.0] == group.times
        assert 70.0 == group.discovery.asks_at

    async def test_late_answer_is_given_to_who_waits(self):
        """They need not ask."""
        group = Found(after(50.0, found("a")), is_cancellable=False)
        await group.wait()

        assert 50.0 == now()
        assert [0.0] == group.times

    async def test_late_failure_counts_no_second_time(self):
        """But who waits is told that it has ended."""
        group = Found(after(50.0, OSError("gave up")), found("a"), is_cancellable=False)
        await group.wait()
        told = ["TimeoutError('no answer within 5 s')", "OSError('gave up')"]

        assert told == group.failures
        assert [0.0, 51.0] == group.times

    async def test_next_one_may_be_late_again(self):
        """Each counts for itself."""
        slow = after(6.0, OSError())
        group = Found(slow, slow, OSError(), is_cancellable=False)
        await group.use()
        await pass_time(6.5)
        await group.use(at=7.0)
        await pass_time(6.5)

        assert 15.0 == group.discovery.asks_at
        await group.use(at=15.0)

        assert 19.0 == group.discovery.asks_at
