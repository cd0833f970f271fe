"""Concurrency limits with ``enforce=False``: they decide and count, and do not act."""

from __future__ import annotations

import asyncio
import logging

import aiohttp
import pytest
from chains import (
    URL,
    Scripted,
    after,
    in_virtual_time,
    now,
    pass_on,
    refused,
    retrying,
    session,
)
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    ConcurrencyLimitListener,
    RequestLog,
    SessionBuilder,
)


class Diary(ConcurrencyLimitListener):
    """Notes when requests would have been refused, and of which call they are."""

    def __init__(self):
        self.entries = []

    def on_refused(self, limit, ctx):
        self.entries.append((now(), ctx.request.method))


class Samples(ConcurrencyLimit):
    """Keeps what it hears."""

    limit = 1

    def __init__(self):
        self.heard = []

    def on_sample(self, round_trip, in_flight, dropped):
        self.heard.append((round_trip, in_flight, dropped))


def dry(limit=1, **settings):
    return ConcurrencyLimitingClient.new_decorator(limit, enforce=False, **settings)


@pytest.fixture
def said(caplog):
    """Return what was said of single requests, without the requests."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")

    def lines():
        records = [each for each in caplog.records if each.levelno == logging.DEBUG]
        texts = (each.getMessage() for each in records if "would" in each.msg)
        return [text.replace(f"<HttpRequest GET {URL}>", "it") for text in texts]

    return lines


async def ends(scripted, number):
    """Make calls at once; return their statuses and ends."""

    async def call():
        return await scripted.get(), now()

    return await asyncio.gather(*(call() for _ in range(number)))


CHAINS = {
    "own": (),
    "retried": (retrying(0.5),),
    "foreign": (pass_on, retrying(0.5)),
}


class TestActing:
    """Whatever is decided, requests go out."""

    @pytest.mark.parametrize("outside", CHAINS.values(), ids=CHAINS)
    async def test_no_request_waits(self, outside, said):
        """Those without a place go out at once; they are said to have waited."""
        limit = ConcurrencyLimit.fixed(1, name="orders")
        answers = [after(1.0, 200), after(2.0, 201), after(3.0, 202)]
        async with Scripted(answers, dry(limit), *outside) as scripted:
            assert [(200, 1.0), (201, 2.0), (202, 3.0)] == await ends(scripted, 3)

        assert [
            "would have waited 1.000 s for 'orders': it",
            "would have waited 2.000 s for 'orders': it",
        ] == said()
        assert (0, 0) == (limit.in_flight, limit.pending)

    @pytest.mark.parametrize("outside", CHAINS.values(), ids=CHAINS)
    async def test_no_request_is_refused(self, outside, said):
        """A listener hears of each that had no place in time, when it had none."""
        diary = Diary()
        limit = ConcurrencyLimit.fixed(1, name="orders", listeners=[diary])
        answers = [after(9.0, status) for status in (200, 201)]
        decorators = dry(limit, timeout=2.0), *outside
        async with Scripted(answers, *decorators) as scripted:
            assert [(200, 9.0), (201, 9.0)] == await ends(scripted, 2)

        assert [(2.0, "GET")] == diary.entries
        error = "concurrency limit 'orders': no place in 2.000 s, pending: 0"
        assert [f"would have refused it: {error}"] == said()

    async def test_a_full_queue_refuses_in_name_only(self, said):
        """At once, and the request counts nowhere."""
        diary = Diary()
        limit = ConcurrencyLimit.fixed(1, name="orders", listeners=[diary])
        answers = [after(1.0, status) for status in (200, 201, 202)]
        async with Scripted(answers, dry(limit, max_pending=1)) as scripted:
            calls = asyncio.create_task(ends(scripted, 3))
            await asyncio.sleep(0.5)

            assert (1, 1) == (limit.in_flight, limit.pending)
            assert [(200, 1.0), (201, 1.0), (202, 1.0)] == await calls

        assert [(0.0, "GET")] == diary.entries
        error = "concurrency limit 'orders': no place in 0.000 s, pending: 1"
        assert [
            f"would have refused it: {error}",
            "would have waited 1.000 s for 'orders': it",
        ] == said()

    async def test_the_numbers_are_warned_of_once_for_all_sessions(self, caplog):
        """They share the limit too."""
        limit = ConcurrencyLimit.fixed(1, name="orders")
        decorator = dry(limit, max_pending=0)
        for _ in range(2):
            answers = [after(1.0, 200)] * 3
            async with Scripted(answers, decorator) as scripted:
                await ends(scripted, 3)

        owner = "concurrency limit 'orders' is not enforced"
        counts = "would have refused: 1, would have waited: 0"
        assert [f"{owner}: {counts}"] == caplog.messages

    async def test_a_breaker_outside_learns_of_answers_alone(self):
        """Nothing was refused that it could see."""
        breaker = CircuitBreaker(minimum_request_threshold=1)
        counting = CircuitBreakerClient.new_decorator(breaker)
        answers = [after(1.0, 200)] * 3
        async with Scripted(answers, dry(timeout=0.0), counting) as scripted:
            await ends(scripted, 3)

        count = breaker.event_count
        assert (3, 0) == (count.success, count.failure)

    async def test_the_log_shows_no_wait(self):
        """The request began when it came."""
        answers = [after(1.0, 200), after(2.0, 200)]
        async with session(answers, dry(), retrying(0.5)) as client:
            first = asyncio.create_task(client.get(URL))
            await asyncio.sleep(0.5)
            log = RequestLog.of(await client.get(URL))
            await first

        assert (2.0, None) == (log.duration, log.delay)


class TestCounting:
    """The limit counts as if it acted."""

    async def test_a_request_that_stands_in_line_gets_its_place(self):
        """From then on it is in flight; the line is that of arrival."""
        limit = ConcurrencyLimit.fixed(1)
        answers = [after(seconds, 200) for seconds in (1.0, 3.0, 4.0)]
        seen = []
        async with Scripted(answers, dry(limit)) as scripted:
            calls = asyncio.create_task(ends(scripted, 3))
            for _ in range(4):
                await asyncio.sleep(1.0 if seen else 0.5)
                seen.append((limit.in_flight, limit.pending))
            await calls

        assert [(1, 2), (1, 1), (1, 1), (1, 0)] == seen
        assert (0, 0) == (limit.in_flight, limit.pending)

    async def test_one_that_ends_first_leaves_the_line(self, said):
        """It would have waited at least so long."""
        limit = ConcurrencyLimit.fixed(1, name="orders")
        answers = [after(5.0, 200), after(1.0, 201)]
        async with Scripted(answers, dry(limit)) as scripted:
            await ends(scripted, 2)

        assert (0, 0) == (limit.in_flight, limit.pending)
        assert ["would have waited 1.000 s for 'orders': it"] == said()

    async def test_a_cancelled_one_leaves_the_line(self):
        """As it would if it waited."""
        limit = ConcurrencyLimit.fixed(1)
        answers = [after(5.0, 200), after(5.0, 201)]
        async with Scripted(answers, dry(limit)) as scripted:
            first = asyncio.create_task(scripted.get())
            await asyncio.sleep(0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await scripted.session.get(URL)

            assert (1, 0) == (limit.in_flight, limit.pending)
            await first

    async def test_one_whose_deadline_passes_would_have_been_refused(self, said):
        """The wait would not have been longer than that."""
        limit = ConcurrencyLimit.fixed(1, name="orders")
        answers = [after(5.0, 200), after(5.0, 201)]
        async with session(answers, dry(limit), timeout=2.0) as client:
            first = asyncio.create_task(client.get(URL, timeout=None))
            await asyncio.sleep(0)
            with pytest.raises(TimeoutError):
                await client.get(URL)
            await first

        error = "concurrency limit 'orders': no place in 2.000 s, pending: 0"
        assert [f"would have refused it: {error}"] == said()

    @pytest.mark.parametrize(
        ("answer", "dropped"), [(200, False), (503, True), (refused(), True)], ids=repr
    )
    async def test_round_trips_count_from_when_the_request_was_sent(
        self, answer, dropped
    ):
        """That is before it had its place."""
        limit = Samples()
        answers = [after(1.0, 200), after(3.0, answer)]
        async with Scripted(answers, dry(limit)) as scripted:
            await ends(scripted, 2)

        assert [(1.0, 1, False), (3.0, 1, dropped)] == limit.heard

    async def test_one_without_a_place_teaches_the_limit_nothing(self):
        """It would not have been sent."""
        limit = Samples()
        answers = [after(5.0, 200), after(2.0, 503), after(3.0, 503)]
        async with Scripted(answers, dry(limit, timeout=2.5)) as scripted:
            await ends(scripted, 3)

        assert [(5.0, 1, False)] == limit.heard


CALL = st.tuples(
    st.sampled_from([0.0, 0.5, 1.0, 2.5]),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.sampled_from([200, 503, TimeoutError()]),
    st.sampled_from([None, 0.75]),
)
"""When a call begins, how long it takes, how it ends, and when it is cancelled."""


class TestAnySchedule:
    """Whatever calls do, they end as without the limit."""

    @given(
        st.lists(CALL, min_size=1, max_size=8),
        st.integers(1, 3),
        st.none() | st.integers(0, 2),
        st.sampled_from([0.0, 1.0, None]),
    )
    def test_calls_end_as_without_the_limit(self, calls, limit, most, timeout):
        """And the limit has nothing left of them."""
        counting = ConcurrencyLimit.fixed(limit)
        free = run(calls)
        assert free == run(calls, dry(counting, max_pending=most, timeout=timeout))
        assert (0, 0) == (counting.in_flight, counting.pending)


def run(calls, *decorators):
    """Make calls; return how and when they ended."""

    async def call(client, number, begins, seconds, answer, patience):
        await asyncio.sleep(begins)
        try:
            async with asyncio.timeout(patience):
                url = f"{URL}/{number}"
                async with client.get(url) as response:
                    return response.status, now()
        except TimeoutError as error:
            return type(error), now()

    async def answer(ctx, request):
        _, seconds, result, _ = calls[int(request.url.name)]
        await asyncio.sleep(seconds)
        return result

    async def work():
        async with session([answer] * len(calls), *decorators) as client:
            each = (call(client, number, *one) for number, one in enumerate(calls))
            return await asyncio.gather(*each)

    return in_virtual_time(work())


class TestMaking:
    """It is an argument of both factories."""

    async def test_each_host_has_a_limit_that_does_not_act(self, caplog):
        """The warning says the sum, and how the limits are made."""

        def one(key):
            return 1

        decorator = ConcurrencyLimitingClient.new_per_host_decorator(
            one, max_pending=0, enforce=False
        )
        async with Scripted([after(1.0, 200)] * 6, decorator) as scripted:
            urls = "http://a/", "http://a/", "http://b/", "http://b/"
            await asyncio.gather(*map(scripted.get, urls))
            await asyncio.sleep(60.0)
            await asyncio.gather(*map(scripted.get, ["http://a/"] * 2))

        first, second = caplog.messages
        assert "per='host', factory=" in first
        assert second.endswith("would have refused: 2, would have waited: 0, in 61 s")

    async def test_a_request_without_a_host_is_not_counted(self):
        """The transport says what is wrong with it."""
        decorator = ConcurrencyLimitingClient.new_per_host_decorator(
            lambda key: 1, enforce=False
        )
        async with Scripted([], decorator) as scripted:
            with pytest.raises(aiohttp.InvalidURL):
                await scripted.session.get("/orders")

    def test_a_description_says_that_it_does_not_act(self):
        """Where it does, nothing is said."""
        builder = SessionBuilder().decorator(dry(2, timeout=1.0))

        assert "max_pending=None, timeout=1.0, enforce=False)" in builder.describe()

    @pytest.mark.parametrize("enforce", [None, 0, "no"])
    def test_it_is_true_or_false(self, enforce):
        """Nothing else."""
        with pytest.raises(ValueError, match="^enforce: "):
            ConcurrencyLimitingClient.new_decorator(1, enforce=enforce)
        with pytest.raises(ValueError, match="^enforce: "):
            ConcurrencyLimitingClient.new_per_host_decorator(int, enforce=enforce)
