"""Limits with ``enforce=False``: they decide and count, and do not act."""

import asyncio
import logging
from functools import partial

import pytest
from chains import (
    URL,
    Scripted,
    after,
    bad_argument,
    in_virtual_time,
    now,
    refused,
    retrying,
    session,
)
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    ConcurrencyLimitListener,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    SessionBuilder,
    unwrap,
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


class TestActing:
    """Whatever is decided, requests go out."""

    async def test_no_request_waits(self, said):
        """Those without a place go out at once; they are said to have waited."""
        limit = ConcurrencyLimit.fixed(1, name="orders")
        answers = [after(1.0, 200), after(2.0, 201), after(3.0, 202)]
        async with Scripted(answers, dry(limit)) as scripted:
            assert [(200, 1.0), (201, 2.0), (202, 3.0)] == await ends(scripted, 3)

        assert [
            "would have waited 1.000 s for 'orders': it",
            "would have waited 2.000 s for 'orders': it",
        ] == said()
        assert (0, 0) == (limit.in_flight, limit.pending)

    async def test_no_request_is_refused(self, said):
        """A listener hears of each that had no place in time, when it had none."""
        diary = Diary()
        limit = ConcurrencyLimit.fixed(1, name="orders", listeners=[diary])
        answers = [after(9.0, status) for status in (200, 201)]
        async with Scripted(answers, dry(limit, timeout=2.0)) as scripted:
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


def watching(limit, **settings):
    return RateLimitingClient.new_decorator(limit, enforce=False, **settings)


def weight(ctx, request):
    return float(request.headers.get("weight", 1))


async def ends_of(client, *weights):
    """Make calls at once; return when each was answered."""

    async def end_of(each):
        async with client.get(URL, headers={"weight": f"{each}"}):
            return now()

    return await asyncio.gather(*map(end_of, weights))


REQUEST = "it"


async def test_nobody_waits_and_each_takes_its_turn_in_the_count(said):
    """So the waits are those that there would have been."""
    limit = RateLimit(1, burst=2)
    async with session([200] * 4, watching(limit)) as client:
        assert [0.0] * 4 == await ends_of(client, 1, 1, 1, 1)

    assert [
        f"would have waited {seconds} s for RateLimit(1, 1.0, burst=2): {REQUEST}"
        for seconds in ("1.000", "2.000")
    ] == said()
    assert 0 == limit.pending


async def test_nobody_is_refused_and_who_would_be_takes_nothing(said):
    """A turn exactly at the timeout is in time."""
    chain = watching(RateLimit(1, burst=1), timeout=1.0)
    async with session([200] * 4, chain) as client:
        await ends_of(client, 1, 1, 1, 1)

    limit = "RateLimit(1, 1.0, burst=1)"
    words = "no turn within the timeout of 1.0 s; next in 2.000 s"
    refused = f"would have refused {REQUEST}: {limit}: {words}"
    assert [f"would have waited 1.000 s for {limit}: {REQUEST}", refused, refused] == (
        said()
    )


async def test_the_limit_that_is_named_is_the_one_whose_turn_is_latest(said):
    """Of several all are counted, or none."""
    both = [RateLimit(1, burst=5), RateLimit(1, burst=10, cost=weight)]
    async with session([200] * 4, watching(both, timeout=9.0)) as client:
        assert [0.0] * 4 == await ends_of(client, 10, 9, 3, 0)

    assert ["would have waited 9.000", "would have refused it: "] == [
        line[:23] for line in said()
    ]
    assert [2.0, -9.0] == [
        round(each._line.rule.burst - each._line.rule._full_at, 6) for each in both
    ]


async def test_a_cost_above_the_burst_or_none_at_all_would_be_refused(said):
    """The call goes on, though nobody knows what it costs."""

    def cost(ctx, request):
        return 9 if request.headers["weight"] == "9" else None

    limit = RateLimit(5, cost=cost)
    async with session([200] * 2, watching(limit)) as client:
        await ends_of(client, 9, 1)

    assert [
        f"would have refused {REQUEST}: {limit!r}: a cost of 9 is above the burst of 5",
        f"would have refused {REQUEST}: cost: None (expected: finite and >= 0)",
    ] == said()


async def test_figures_are_corrected_as_ever(said):
    """By the caller, too."""
    limit = RateLimit(1, burst=10, cost=weight, actual=lambda log, content: 2)
    async with session([200] * 2, watching(limit)) as client:
        await ends_of(client, 10)
        response = await client.get(URL, headers={"weight": "9"})
        limit.settle(response, 1)

    assert ["would have waited 1.000"] == [line[:23] for line in said()]
    assert 3.0 == limit._line.rule._full_at


async def test_a_server_that_says_nothing_is_left_is_asked_all_the_same(said):
    """Its later answers are learnt from, also those that would not have come."""

    def answer(seconds):
        return 200, {"RateLimit": f'"a";r=0;t={seconds}'}, b""

    chain = watching(RateLimit.from_headers(), timeout=10.0)
    async with session([answer(5), answer(50), 200], chain) as client:
        for _ in range(3):
            await ends_of(client, 1)

    assert ["would have waited 5.000", "would have refused it: "] == [
        line[:23] for line in said()
    ]


async def test_after_a_wait_that_was_cut_nobody_finds_out_before(said):
    """Only who has waited does."""
    chain = watching(RateLimit.from_headers(max_wait=5.0))
    answers = [(429, {"Retry-After": "99"}, b""), 200, 200, 200]
    async with session(answers, chain) as client:
        for _ in range(3):
            await ends_of(client, 1)
        await asyncio.sleep(5.0)
        await ends_of(client, 1)

    assert ["would have waited 5.000"] * 2 == [line[:23] for line in said()]


async def test_the_number_is_warned_of_once_a_minute(caplog):
    """With the limits that do not act."""
    chain = watching([RateLimit(1, burst=1), RateLimit(50)])
    async with session([200] * 9, chain) as client:
        for _ in range(3):
            await ends_of(client, 1, 1, 1)
            await asyncio.sleep(61.0)

    assert [
        "[RateLimit(1, 1.0, burst=1), RateLimit(50, 1.0)] is not enforced:"
        f" would have refused: 0, would have waited: {number}{since}"
        for number, since in [(1, ""), (2, ", in 61 s"), (2, ", in 61 s")]
    ] == caplog.messages


async def test_per_host_each_has_a_rate_and_all_have_one_warning(caplog):
    """It names the factory."""

    def rate(key):
        return RateLimit(1, burst=1)

    decorator = RateLimitingClient.new_per_host_decorator(rate, enforce=False)
    async with session([200] * 4, decorator) as client:
        for host in "aabb":
            await client.get(f"http://{host}/")
        limits = unwrap(client, RateLimitingClient).limits

    assert ["a:80", "b:80"] == [*limits]
    (message,) = caplog.messages
    assert message.startswith("rate limit, per='host', factory=")


@pytest.mark.parametrize("decorator", [dry(), watching(RateLimit(1, burst=1))])
async def test_the_log_shows_no_wait(decorator):
    """The request began when it came."""
    answers = [after(1.0, 200), after(2.0, 200)]
    async with session(answers, decorator, retrying(0.5)) as client:
        first = asyncio.create_task(client.get(URL))
        await asyncio.sleep(0.5)
        log = RequestLog.of(await client.get(URL))
        await first

    assert (2.0, None, None) == (log.duration, log.delay, log.delay_source)


@pytest.mark.parametrize(
    ("decorator", "shown"),
    [
        (dry(2, timeout=1.0), "max_pending=None, timeout=1.0, enforce=False)"),
        (watching(5), "RateLimitingClient(RateLimit(5, 1.0), timeout=None, enforce=F"),
    ],
)
def test_a_description_says_that_it_does_not_act(decorator, shown):
    """Where it does, nothing is said."""
    assert shown in SessionBuilder().decorator(decorator).describe()


@pytest.mark.parametrize("enforce", [None, 0, "no"], ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        partial(ConcurrencyLimitingClient.new_decorator, 1),
        partial(ConcurrencyLimitingClient.new_per_host_decorator, int),
        partial(RateLimitingClient.new_decorator, 5),
    ],
)
def test_it_is_true_or_false(make, enforce):
    """Nothing else."""
    with bad_argument("enforce", enforce, "True or False"):
        make(enforce=enforce)
