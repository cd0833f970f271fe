"""Rules that backoffs, budgets and hints of servers keep, with any settings."""

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from calls import ended
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict

from aioretry_smithy import Backoff, RetryBudget
from aioretry_smithy._failures.hints import retry_after

# Whole numbers are as good as others here.
pytestmark = pytest.mark.filterwarnings("ignore:.*units are seconds:RuntimeWarning")

LARGEST_CHANCE = math.nextafter(1.0, 0.0)

delays = st.floats(0, 1e9) | st.floats(0, 1.7e308) | st.integers(0, 10**6)
counts = st.integers(1, 100) | st.integers(1, 10**6)
chances = st.floats(0, LARGEST_CHANCE) | st.just(LARGEST_CHANCE)
rates = st.floats(-1, 1)
ranges = st.tuples(delays, delays).map(sorted)
multipliers = st.floats(1, 1e300, exclude_min=True)


@st.composite
def backoffs(draw):
    """A backoff without jitter, and its longest delay."""
    low, high = draw(ranges)
    chance = draw(chances)
    return draw(
        st.sampled_from(
            [
                (Backoff.without_delay(), 0.0),
                (Backoff.fixed(high), high),
                (Backoff.random(low, high, random=lambda: chance), high),
                (Backoff.exponential(low, high, draw(multipliers)), high),
                (Backoff.fibonacci(low, high), high),
            ]
        )
    )


WRAPPERS = [
    lambda backoff: backoff.with_jitter(0.2),
    lambda backoff: backoff.with_jitter(-0.5, 1),
    lambda backoff: backoff.with_full_jitter(),
    lambda backoff: backoff.with_max_attempts(50),
    lambda backoff: backoff.with_max_attempts(10**7),
]


@given(backoffs(), counts)
def test_delay_is_never_longer_than_its_limit(made, n):
    """However many attempts there were, a delay is a float from 0 to the limit."""
    backoff, longest = made
    delay = backoff.next_delay(n)

    assert isinstance(delay, float)
    assert 0 <= delay <= longest


@given(ranges, multipliers, st.integers(1, 3000))
def test_growing_delays_never_shrink(ends, multiplier, n):
    """More attempts never mean a shorter wait; the first wait is the initial one."""
    for backoff in (Backoff.exponential(*ends, multiplier), Backoff.fibonacci(*ends)):
        assert ends[0] == backoff.next_delay(1)
        assert backoff.next_delay(n) <= backoff.next_delay(n + 1)


@given(ranges, chances)
@example([0.1, 0.3], LARGEST_CHANCE)
def test_random_delay_is_within_its_range(ends, chance):
    """Both ends hold, to the last bit."""
    delay = Backoff.random(*ends, random=lambda: chance).next_delay(1)

    assert ends[0] <= delay <= ends[1]


@given(st.floats(0, 1e300), st.tuples(rates, rates).map(sorted), chances)
@example(1.0, [0.1, 0.3], LARGEST_CHANCE)
def test_jittered_delay_is_within_its_range(delay, ends, chance):
    """Jitter stays in ``[d * (1 + lo), d * (1 + hi)]``, to the last bit."""
    lo, hi = ends
    jittered = Backoff.fixed(delay).with_jitter(lo, hi, random=lambda: chance)

    assert delay * (1 + lo) <= jittered.next_delay(1) <= delay * (1 + hi)


@given(backoffs(), st.lists(st.sampled_from(WRAPPERS), max_size=6), counts)
def test_wrappers_compose(made, wrappers, n):
    """Any pile of wrappers gives a finite delay, or stops at its lowest limit."""
    backoff = made[0]
    for wrap in wrappers:
        backoff = wrap(backoff)
    delay = backoff.next_delay(n)
    stops = ".with_max_attempts(50)" in repr(backoff) and n >= 50

    assert stops == (delay is None)
    assert delay is None or (math.isfinite(delay) and delay >= 0)
    with pytest.raises(ValueError, match="num_attempts_so_far"):
        backoff.next_delay(1 - n)


words = st.sampled_from(
    [
        *("exponential", "fibonacci", "fixed", "random", "jitter", "maxAttempts"),
        *("=", "=", ":", ":", ",", ",", "-", ".", "0", "1", "200", "10s", "5ms", "0.2"),
        *("nan", "1e999", " ", "٣", "²", "İ", "\x00", "\ud800"),
    ]
)


@given(st.text() | st.lists(words, max_size=30).map("".join))
def test_any_text_is_a_backoff_or_a_value_error(spec):
    """Hostile text gives one line that names the argument, and no other exception."""
    try:
        backoff = Backoff.of(spec)
    except ValueError as error:
        message = str(error)
        assert message.startswith("spec: ")
        assert message.endswith(")")
        assert len(message.splitlines()) == 1
    else:
        delay = backoff.next_delay(1)
        assert delay is None or (math.isfinite(delay) and delay >= 0)


numbers = st.integers(0, 10**6)


@given(
    numbers,
    numbers,
    st.sampled_from(["", "ms", "s"]),
    st.integers(0, 100),
    st.integers(1, 100),
)
def test_every_well_formed_spec_is_read(initial, more, unit, percent, limit):
    """A spec that the grammar allows is the same as the factory calls."""
    scale = 1 if unit == "s" else 1000
    spec = (
        f"exponential={initial}{unit}:{initial + more}{unit}:1.5,"
        f"jitter=-{percent / 100}:{percent / 100},maxAttempts={limit}"
    )
    backoff = Backoff.exponential(initial / scale, (initial + more) / scale, 1.5)
    if percent:
        backoff = backoff.with_jitter(percent / 100)

    assert backoff.with_max_attempts(limit) == Backoff.of(spec)


ACTS = st.lists(st.sampled_from(["success", "failure", "retry", "give back"]))
OUTCOMES = st.sampled_from([500, 503])
STEPS = st.lists(
    st.tuples(st.sampled_from(["success", "failure", "retry", "given up"]), OUTCOMES)
)
COSTS = st.fractions(min_value=0, max_value=1, max_denominator=100)
SHARES = st.fractions(min_value=0, max_value=2, max_denominator=1000)
CAPACITIES = st.fractions(min_value=1, max_value=20, max_denominator=100)
BRAKES = st.none() | st.integers(min_value=1, max_value=5)


def act(budget, what):
    """Let one thing happen; say whether leave to retry was given."""
    ctx = ended()
    if what == "retry":
        return budget.acquire(ctx, None)
    if what == "success":
        budget.on_success(ctx)
    elif what == "failure":
        budget.on_failure(ctx, TimeoutError())
    else:
        budget.release(ctx)
    return None


class Books:
    """The same rules, kept with fractions."""

    price = 1

    def __init__(self, deposit, capacity, brake_after):
        self.deposit, self.capacity, self.brake_after = deposit, capacity, brake_after
        self.tokens, self.failures = capacity, 0

    def acquire(self, ctx, cause):
        braked = self.brake_after is not None and self.failures >= self.brake_after
        if braked or self.tokens < self.price:
            return False
        self.tokens -= self.price
        return True

    def release(self, ctx):
        self.tokens = min(self.tokens + self.price, self.capacity)

    def on_success(self, ctx):
        self.failures = 0
        self.tokens = min(self.tokens + self.deposit, self.capacity)

    def on_failure(self, ctx, cause):
        self.failures += self.price


@given(ACTS, SHARES, CAPACITIES, BRAKES)
async def test_books_are_exact(acts, deposit, capacity, brake_after):
    """Floats given in, every answer is the one that fractions give."""
    budget = RetryBudget(
        deposit=float(deposit), capacity=float(capacity), brake_after=brake_after
    )
    books = Books(deposit, capacity, brake_after)
    for what in acts:
        assert act(books, what) == act(budget, what)
        assert pytest.approx(float(books.tokens), abs=1e-9) == budget.tokens
        assert books.failures == budget.failures_in_a_row
        assert 0 <= budget.tokens <= float(capacity)


@given(STEPS, SHARES, CAPACITIES, BRAKES, COSTS)
async def test_unserved_failures_and_the_retries_after_them_cost_a_part(
    steps, deposit, capacity, brake_after, cost
):
    """To the last fraction, also where a retry is given up."""
    settings = {"deposit": float(deposit), "capacity": float(capacity)}
    budget = RetryBudget(**settings, brake_after=brake_after, unserved_cost=float(cost))
    books = Books(deposit, capacity, brake_after)
    for what, status in steps:
        ctx, books.price = ended(status), cost if status == 503 else 1
        if what == "success":
            assert books.on_success(ctx) == budget.on_success(ctx)
        elif what == "failure":
            assert books.on_failure(ctx, None) == budget.on_failure(ctx, None)
        else:
            is_paid = books.acquire(ctx, None)
            assert is_paid == budget.acquire(ctx, None)
            if is_paid and what == "given up":
                assert books.release(ctx) == budget.release(ctx)
        assert pytest.approx(float(books.tokens), abs=1e-8) == budget.tokens
        failures = budget.failures_in_a_row
        assert pytest.approx(float(books.failures), abs=1e-8) == failures
        assert isinstance(failures, int) == (books.failures == int(books.failures))


@given(
    ACTS,
    st.floats(min_value=0, max_value=1e6),
    st.floats(min_value=1, max_value=1e6),
    BRAKES,
)
async def test_any_settings_stay_in_bounds(acts, deposit, capacity, brake_after):
    """Also those that no short fraction stands for."""
    budget = RetryBudget(deposit=deposit, capacity=capacity, brake_after=brake_after)
    assert capacity == pytest.approx(budget.tokens, abs=1e-9)
    full = budget.tokens
    for what in acts:
        act(budget, what)
        assert 0 <= budget.tokens <= full


@given(st.lists(st.sampled_from(["success", "retry"])), SHARES, CAPACITIES)
async def test_successes_pay_for_retries(acts, deposit, capacity):
    """Retries never outnumber the capacity and the deposits together."""
    budget = RetryBudget(deposit=float(deposit), capacity=float(capacity))
    retries = sum(act(budget, what) or 0 for what in acts)

    assert retries <= capacity + Fraction(acts.count("success")) * deposit


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
    lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
)
fragments = st.sampled_from(
    [
        *(
            "Sun, ",
            "Sunday, ",
            "Sun ",
            "06 ",
            "06-",
            "31 ",
            " 6 ",
            "Nov ",
            "Nov-",
            "Feb ",
        ),
        *(
            "1994 ",
            "94 ",
            "0000 ",
            "08:49:37 ",
            "24:00:00 ",
            "GMT",
            "1994",
            "5",
            "9" * 11,
        ),
        *("-", "+", ".", " ", "٣", "²", "\x00", "\ud800"),
    ]
)
values = st.text() | st.lists(fragments, max_size=8).map("".join)


def imf_fixdate(moment):
    return f"{moment:%a, %d %b} {moment.year:04} {moment:%H:%M:%S} GMT"


def rfc_850(moment):
    return f"{moment:%A, %d-%b-%y %H:%M:%S} GMT"


def asctime(moment):
    return f"{moment:%a %b} {moment.day:2} {moment:%H:%M:%S} {moment.year:04}"


def seconds(moment):
    return (moment - EPOCH).total_seconds()


@given(values, values, values, st.floats(-1e9, 1e11))
@example("9" * 10_000, "9" * 10_000, "", 0.0)
@example("Sunday, 29-Feb-00 00:00:00 GMT", "", "Sunday, 29-Feb-99 00:00:00 GMT", 0.0)
def test_any_header_is_a_wait_or_nothing(standard, amazon, date, now):
    """Nothing that a server sends raises, or makes a wait that is below 0."""
    headers = CIMultiDict(
        {"Retry-After": standard, "x-amz-retry-after": amazon, "Date": date}
    )
    hint = retry_after(headers, now=now)

    assert hint is None or hint >= 0


@given(st.integers(0, 10**12))
def test_every_number_is_seconds_or_too_long(number):
    """Ten digits are a number of seconds; eleven are too long."""
    expected = float(number) if number < 10**10 else math.inf

    assert expected == retry_after(CIMultiDict({"Retry-After": f"{number}"}), now=0)


@given(moments, moments, st.sampled_from([imf_fixdate, asctime]))
def test_every_date_is_the_time_between_two_dates(then, sent, form):
    """Each date of HTTP that can be written is read back exactly."""
    headers = CIMultiDict({"Retry-After": form(then), "Date": form(sent)})

    assert max(0.0, seconds(then) - seconds(sent)) == retry_after(headers, now=0)


@given(
    st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),
    st.integers(-49 * 365, 49 * 365),
)
def test_every_short_date_within_fifty_years_is_read(today, days):
    """A year of two digits is the one nearest to now that can be meant."""
    now = today.replace(microsecond=0, tzinfo=UTC)
    then = now + timedelta(days=days)
    headers = CIMultiDict({"Retry-After": rfc_850(then)})

    assert max(0.0, days * 86400.0) == retry_after(headers, now=seconds(now))
