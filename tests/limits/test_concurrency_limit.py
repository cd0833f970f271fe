"""Places under a limit: their number, their order, and limits that adapt."""

import asyncio
import math
import random
from asyncio import get_running_loop
from decimal import Decimal
from fractions import Fraction

import pytest
from chains import now
from hypothesis import given, settings
from hypothesis import strategies as st

from aioretry_smithy import ConcurrencyLimit, ConcurrencyLimitListener


class Diary(ConcurrencyLimitListener):
    """Notes what it hears."""

    def __init__(self):
        self.entries = []

    def on_limit_changed(self, limit):
        self.entries.append((limit.name, limit.limit))


class Halved(ConcurrencyLimit):
    """A limit of a user's own, who knows nothing of ``super().__init__()``."""

    def __init__(self, limit):
        self.places = limit
        self.samples = []

    @property
    def limit(self):
        return self.places

    def on_sample(self, round_trip, in_flight, dropped):
        self.samples.append((round_trip, in_flight, dropped))
        self.places = max(1, self.places // 2) if dropped else self.places


async def enter(limit, until=math.inf):
    """Get a place as a client does."""
    return limit._try_enter(get_running_loop()) or await limit._wait(until)


class TestPlaces:
    """Requests get a place, or none."""

    async def test_there_are_as_many_as_the_limit_says(self):
        """The next has to wait until one is left."""
        limit = ConcurrencyLimit.fixed(2)
        first, second = (limit._try_enter(get_running_loop()) for _ in range(2))

        assert limit._try_enter(get_running_loop()) is None
        assert (2, 0) == (limit.in_flight, limit.pending)

        first.release()
        third = limit._try_enter(get_running_loop())

        assert third is not None
        assert limit._try_enter(get_running_loop()) is None
        second.release()

    async def test_a_function_is_asked_at_each_arrival_and_each_end(self):
        """Its answer holds from then on; requests that wait come before new ones."""
        many = 1
        diary = Diary()
        limit = ConcurrencyLimit.fixed(lambda: many, name="o", listeners=[diary])
        place = limit._try_enter(get_running_loop())
        waiter = asyncio.create_task(enter(limit))
        await asyncio.sleep(0)
        many = 2

        assert limit._try_enter(get_running_loop()) is None
        assert (await waiter) is not None
        assert [("o", 1), ("o", 2)] == diary.entries

        many = 1
        place.release()

        assert (1, 1) == (limit.limit, limit.in_flight)
        assert [("o", 1), ("o", 2), ("o", 1)] == diary.entries

    @pytest.mark.parametrize("answer", [0, 1.5, None])
    async def test_a_function_that_returns_no_limit_is_refused(self, answer):
        """The caller learns what is wrong."""
        limit = ConcurrencyLimit.fixed(lambda: answer)

        with pytest.raises(ValueError, match="^limit: .* returns an int >= 1"):
            limit._try_enter(get_running_loop())

    async def test_a_limit_of_a_users_own_hears_of_samples(self):
        """It needs neither a name nor a call of its parent."""
        limit = Halved(4)
        place = limit._try_enter(get_running_loop())
        await asyncio.sleep(1.5)
        place.learn(dropped=True)

        assert [(1.5, 1, True)] == limit.samples
        assert 2 == limit.limit
        assert limit.name.startswith("concurrency-limit-")

    @pytest.mark.parametrize("limit", [None, "3", math.nan, -1])
    async def test_a_limit_of_a_users_own_that_is_none_is_refused(self, limit):
        """Without an end, or by Python's words about "<", none would go out."""
        expected = r"^Halved\.limit: .* \(expected: a number >= 0\)$"
        with pytest.raises(ValueError, match=expected):
            Halved(limit)._try_enter(get_running_loop())

    @pytest.mark.parametrize("number", [Fraction(1, 2), Decimal(1), math.inf])
    async def test_a_limit_of_a_users_own_may_be_any_number(self, number):
        """As one of numpy, which is no int."""
        limit = Halved(number)

        assert limit._try_enter(get_running_loop()) is not None
        assert 1 == limit.in_flight

    async def test_a_place_that_was_given_back_teaches_its_limit_nothing(self):
        """Another request has it by then."""
        limit = Halved(4)
        place = limit._try_enter(get_running_loop())
        place.release()
        place.learn(dropped=True)

        assert 4 == limit.limit
        assert 0 == limit.in_flight

    async def test_samples_may_be_ignored(self):
        """A limit that does not learn need not say so."""
        limit = ConcurrencyLimit.fixed(3, name="orders")
        limit._try_enter(get_running_loop()).learn(dropped=True)

        assert 3 == limit.limit
        assert "ConcurrencyLimit.fixed(3, name='orders')" == repr(limit)

    @pytest.mark.parametrize("kind", [ConcurrencyLimit.aimd, ConcurrencyLimit.gradient])
    async def test_limits_that_learn_do_so_from_samples(self, kind):
        """A drop costs both of them a tenth of their places; listeners hear of both."""
        diary = Diary()
        limit = kind(name="o", listeners=[diary])
        place = limit._try_enter(get_running_loop())
        await asyncio.sleep(1.0)
        place.learn(dropped=True)

        assert 18 == limit.limit
        assert [("o", 20), ("o", 18)] == diary.entries

    @pytest.mark.parametrize("kind", [ConcurrencyLimit.aimd, ConcurrencyLimit.gradient])
    async def test_limit_of_a_users_own_may_ask_one_that_learns(self, kind):
        """It passes on the samples that it wants it to learn from."""
        inner = kind()

        class Careful(ConcurrencyLimit):
            limit = property(lambda self: min(19, inner.limit))

            def on_sample(self, round_trip, in_flight, dropped):
                inner.on_sample(round_trip, in_flight, dropped)

        limit = Careful()
        place = limit._try_enter(get_running_loop())
        before = limit.limit
        await asyncio.sleep(1.0)
        place.learn(dropped=True)

        assert (19, 18) == (before, limit.limit)

    @pytest.mark.parametrize("limit", [0, -1, 1.5, True, None, asyncio.sleep])
    def test_a_bad_limit_is_refused(self, limit):
        """At once, where it is made."""
        with pytest.raises(ValueError, match="^limit: .*an int >= 1, or a function"):
            ConcurrencyLimit.fixed(limit)

    @pytest.mark.parametrize("name", ["", 1])
    def test_a_bad_name_is_refused(self, name):
        """At once, where it is made."""
        with pytest.raises(ValueError, match="^name: "):
            ConcurrencyLimit.aimd(name=name)


class TestLine:
    """Requests wait for a place in line."""

    async def test_a_place_that_is_left_at_the_last_moment_is_in_time(self):
        """Whichever of the two timers goes off first."""
        for until in (1.0, 2.0):
            limit = ConcurrencyLimit.fixed(1)
            place = limit._try_enter(get_running_loop())
            waiter = asyncio.create_task(enter(limit, until))
            await asyncio.sleep(0)
            await asyncio.sleep(until - now())
            place.release()

            assert (await waiter) is not None

    async def test_nothing_is_left_on_the_loop_when_nobody_waits(self):
        """Neither after a turn, nor after a cancellation."""
        limit = ConcurrencyLimit.fixed(1)
        place = limit._try_enter(get_running_loop())
        first, second = (asyncio.create_task(enter(limit, 10.0)) for _ in range(2))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        place.release()
        await first
        timers = [
            timer
            for timer in asyncio.get_running_loop()._scheduled
            if not timer.cancelled()
        ]

        assert [] == timers

    async def test_a_waiter_that_is_thrown_away_is_forgotten(self):
        """As by a program that drops a coroutine."""
        limit = ConcurrencyLimit.fixed(1)
        place = limit._try_enter(get_running_loop())
        waiting = enter(limit, 10.0)
        waiting.send(None)
        waiting.close()

        assert 0 == limit.pending
        place.release()


histories = st.integers(0, 2**32).map(random.Random)


def bounds(chance):
    minimum = chance.randint(1, 10)
    maximum = chance.randint(minimum, 300)
    initial = chance.uniform(minimum, maximum)
    return {"initial": initial, "minimum": minimum, "maximum": maximum}


async def samples(chance, rule):
    """Yield ends, round trips, requests in flight and whether each was dropped."""
    await asyncio.sleep(chance.choice([0.0, 1e6]))
    for _ in range(chance.randint(0, 60)):
        await asyncio.sleep(chance.choice([0.0, chance.random()]))
        in_flight = chance.randint(1, max(1, rule.limit))
        yield now(), chance.uniform(0.0, 2.0), in_flight, chance.random() < 0.2


@settings(max_examples=10 * settings.default.max_examples)
@given(histories)
async def test_aimd_agrees_with_a_plain_model(chance):
    """One more a round trip, a share less a round trip with drops."""
    limits = bounds(chance)
    slow_after = chance.choice([None, 1.5])
    rule = ConcurrencyLimit.aimd(**limits, backoff_ratio=0.8, slow_after=slow_after)
    (expected, minimum, maximum), cuts = limits.values(), []
    async for at, round_trip, in_flight, dropped in samples(chance, rule):
        rule.on_sample(round_trip, in_flight, dropped)
        if dropped or (slow_after and round_trip > slow_after):
            if all(at - round_trip > cut + 1e-6 for cut in cuts):
                expected *= 0.8
                cuts.append(at)
        elif 2 * in_flight >= expected:
            expected += 1 / expected
        expected = min(max(expected, minimum), maximum)

        assert expected == rule._exact


@settings(max_examples=10 * settings.default.max_examples)
@given(histories)
async def test_gradient_agrees_with_a_plain_model(chance):
    """It is Netflix's class in other words; a drop has no round trip."""
    limits = bounds(chance)
    window = chance.choice([1, 5, 20, 600])
    rule = ConcurrencyLimit.gradient(**limits, window=window)
    limit, minimum, maximum = limits.values()
    average, measured, cuts = 0.0, [], []
    async for at, round_trip, in_flight, dropped in samples(chance, rule):
        rule.on_sample(round_trip, in_flight, dropped)
        gradient = 0.5
        if dropped:
            changes = all(at - round_trip > cut + 1e-6 for cut in cuts)
            cuts += [at] * changes
        else:
            changes = in_flight >= limit / 2
            measured.append(round_trip)
            # The plain average of what Netflix's class saw so far, to begin with.
            if len(measured) <= min(10, window):
                many = len(measured)
                average = (average * (many - 1) + round_trip) / many
            else:
                factor = 2 / (window + 1)
                average = average * (1 - factor) + round_trip * factor
            gradient = max(0.5, min(1.0, 1.5 * average / round_trip))
            if average / round_trip > 2:
                average *= 0.95
        if changes:
            new = limit * gradient + 4
            limit = limit * 0.8 + new * 0.2
            limit = max(minimum, min(maximum, limit))

        assert pytest.approx(limit) == rule._exact
        # Sums in another order differ a little, and half of them may be a whole number.
        limit = rule._exact


def test_answers_that_take_no_time_do_not_break_the_gradient():
    """A mock may answer in the same instant."""
    rule = ConcurrencyLimit.gradient()
    rule.on_sample(0.0, 20, dropped=False)

    assert 20.8 == pytest.approx(rule._exact)


async def test_a_call_that_began_in_the_instant_of_a_cut_does_not_cut_again():
    """The sums of floats that tell so may differ a little."""
    rule = ConcurrencyLimit.aimd(backoff_ratio=0.5)
    await asyncio.sleep(0.7)
    rule.on_sample(0.7, 20, dropped=True)
    await asyncio.sleep(0.1)
    rule.on_sample(0.1, 20, dropped=True)

    assert 10.0 == rule._exact


@pytest.mark.parametrize(
    ("kind", "argument", "value"),
    [
        ("aimd", "initial", 0),
        ("aimd", "initial", 201),
        ("aimd", "initial", None),
        ("aimd", "minimum", 0),
        ("aimd", "minimum", 1.5),
        ("aimd", "maximum", float("inf")),
        ("aimd", "maximum", 0),
        ("aimd", "backoff_ratio", 0),
        ("aimd", "backoff_ratio", 1),
        ("aimd", "backoff_ratio", "0.9"),
        ("aimd", "slow_after", 0),
        ("aimd", "slow_after", "1"),
        ("gradient", "tolerance", 0.9),
        ("gradient", "tolerance", None),
        ("gradient", "smoothing", 0),
        ("gradient", "smoothing", 1.1),
        ("gradient", "smoothing", None),
        ("gradient", "queue", -1),
        ("gradient", "queue", None),
        ("gradient", "window", 0),
        ("gradient", "window", 1.5),
    ],
)
def test_bad_arguments_are_refused(kind, argument, value):
    """The error names the argument."""
    with pytest.raises(ValueError, match=rf"^{argument}: {value!r} \(expected: "):
        getattr(ConcurrencyLimit, kind)(**{argument: value})
