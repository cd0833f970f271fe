"""A retry budget keeps its books exactly, whatever happens in whatever order."""

from fractions import Fraction

import pytest
from calls import ended
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import RetryBudget

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
