"""A list of endpoints that is kept fresh while it is used."""

import asyncio
import contextvars
import gc
import math
import threading
import weakref

import pytest
from chains import now
from group_servers import Found, after, found, pass_time, settled, tasks

from aioretry_smithy import Endpoint
from aioretry_smithy._endpoints.discovery import Answer, Listed
from aioretry_smithy.testing import VirtualTimeLoop

pytestmark = pytest.mark.usefixtures("no_jitter")


class TestUse:
    """The list is asked for when it is used and has grown old."""

    @pytest.mark.parametrize(
        ("ttl", "holds"), [(0, 1.0), (30, 30.0), (30_000, 60.0), (math.inf, 60.0)]
    )
    async def test_time_to_live_is_clamped(self, ttl, holds):
        """Neither is DNS asked all the time, nor is it forgotten."""
        group = Found(found("a", ttl=ttl))
        await group.use()

        assert holds == group.discovery.due_at == group.discovery.asks_at

    async def test_limits_of_the_time_to_live_are_the_users(self):
        """Also the time without any is clamped to them."""
        group = Found(found("a"), refresh=(20.0, 20.0))
        await group.use()

        assert 20.0 == group.discovery.due_at

    async def test_list_serves_while_the_next_one_is_asked_for(self):
        """Uses meanwhile have nothing to do."""
        group = Found(found("a"), after(2.0, found("b")))
        await group.use()

        assert await group.use(at=10.0) is True
        assert 70.0 == group.discovery.due_at
        assert math.inf == group.discovery.asks_at
        assert await group.use(at=11.0) is True
        assert [["a"]] == group.lists
        await pass_time(1.0)

        assert [["a"], ["b"]] == group.lists
        assert [0.0, 10.0] == group.times

    async def test_list_that_grows_too_old_during_a_query_stops_to_serve(self):
        """Calls before that are served, later ones wait."""
        group = Found(found("a"), after(2.0, found("b")))
        await group.use()

        assert await group.use(at=69.0) is True
        assert await group.use(at=70.0) is True
        assert await group.use(at=70.5) is False
        assert [0.0, 69.0] == group.times
        await pass_time(0.5)


class TestOrder:
    """Endpoints keep their places."""

    async def test_order_of_answers_does_not_matter(self):
        """Those that stay keep their places, new ones come last."""
        answers = found("a", "b", "c"), found("d", "c", "e", "a"), found("e", "d", "a")
        group = Found(*answers)
        for at in (0.0, 10.0, 20.0):
            await group.use(at=at)

        assert [["a", "b", "c"], ["a", "c", "d", "e"], ["a", "d", "e"]] == group.lists

    async def test_weight_and_rank_are_those_of_the_last_answer(self):
        """An endpoint is the same with another weight."""
        first = Listed(Endpoint("http://a", weight=1.0), 0)
        second = Listed(Endpoint("http://a", weight=2.0), 1)
        group = Found(Answer((first,)), Answer((second,)))
        taken = []
        group.set_listed = taken.extend
        await group.use()
        await group.use(at=10.0)

        assert [1.0, 2.0] == [each.endpoint.weight for each in taken]
        assert [0, 1] == [each.rank for each in taken]

    async def test_endpoint_listed_twice_is_one_of_the_lower_rank(self):
        """It serves as early as it may."""
        twice = (
            Listed(Endpoint("http://a"), 1),
            Listed(Endpoint("http://b"), 0),
            Listed(Endpoint("http://a"), 0),
        )
        group = Found(Answer(twice))
        taken = []
        group.set_listed = taken.extend
        await group.use()

        assert [("a", 0), ("b", 0)] == [(str(each[0]), each[1]) for each in taken]


class TestTask:
    """A query belongs to no call."""

    async def test_nothing_takes_over_the_context_of_a_call(self):
        """Neither the query nor who hears of it."""
        variable = contextvars.ContextVar("variable", default="none")
        seen = []

        async def ask():
            seen.append(variable.get())
            return found("a")

        group = Found(ask, after(6.0, found("a")))
        for method in ("set_listed", "note_failed_query"):
            setattr(group, method, lambda told: seen.append(variable.get()))
        variable.set("a call's")
        await group.use()
        await group.use(at=10.0)
        await pass_time(5.0)

        assert 3 * ["none"] == seen

    async def test_is_collected_when_dropped(self):
        """Nothing else holds it."""
        group = Found(found("a"))
        await group.use()
        there = weakref.ref(group.discovery)
        del group
        gc.collect()

        assert there() is None


class TestReset:
    """It serves one event loop at a time."""

    async def test_cancels_the_query_and_forgets_all(self):
        """As if it was new."""
        group = Found(found("a"), after(3.0, found("b")), found("c"))
        await group.use()
        await group.use(at=10.0)
        group.discovery.reset()
        await settled()

        assert set() == tasks()
        assert [] == group.failures
        assert -math.inf == group.discovery.due_at == group.discovery.asks_at
        assert await group.use() is False
        assert [["a"], ["c"]] == group.lists

    async def test_order_and_empty_answers_are_forgotten_too(self):
        """The first answer after it is the first."""
        group = Found(found("a", "b"), found(), found("b", "a"))
        await group.use()
        await group.use(at=10.0)
        group.discovery.reset()
        await group.use()

        assert [["a", "b"], ["b", "a"]] == group.lists

    async def test_series_of_failures_is_forgotten(self):
        """The pause is the first one again."""
        group = Found(OSError())
        await group.use()
        await group.use(at=1.0)
        group.discovery.reset()
        await group.use(at=1.5)

        assert 2.5 == group.discovery.asks_at

    async def test_answer_that_is_just_there_is_dropped(self):
        """It belongs to what is forgotten."""
        group = Found(found("a"))
        group.discovery.use(now())
        await asyncio.sleep(0)
        group.discovery.reset()
        await settled()

        assert [] == group.lists

    async def test_query_that_is_just_late_is_dropped(self):
        """It fails nobody."""
        group = Found(after(math.inf, None))
        asyncio.get_running_loop().call_at(5.0, group.discovery.reset)
        await group.use()
        await pass_time(5.0)

        assert [] == group.failures

    def test_serves_a_new_loop(self):
        """That of the old one may be closed."""
        group = Found(after(3.0, found("a")), found("b"))
        old = VirtualTimeLoop()

        async def begin():
            assert await group.use() is False

        old.run_until_complete(begin())
        task = asyncio.all_tasks(old).pop()
        old.close()
        group.discovery.reset()
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(begin())

        assert [["b"]] == group.lists
        # Nobody can end it any more.
        task._log_destroy_pending = False

    def test_ends_the_query_of_another_threads_loop(self):
        """That loop itself does so."""
        begun, ended = threading.Event(), []

        async def hang():
            begun.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append(threading.current_thread())

        group = Found(hang)

        async def begin():
            group.discovery.use(now())
            await asyncio.wait(tasks())

        thread = threading.Thread(target=asyncio.run, args=(begin(),), daemon=True)
        thread.start()
        begun.wait(10.0)
        group.discovery.reset()
        thread.join(10.0)

        assert [thread] == ended
        assert [] == group.failures


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
