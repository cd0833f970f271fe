"""A retry budget keeps its books exactly, whatever happens in whatever order."""

from fractions import Fraction

import pytest
from calls import ended
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import RetryBudget

ACTS = st.lists(st.sampled_from(["success", "failure", "retry", "give back"]))
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

    def __init__(self, deposit, capacity, brake_after):
        self.deposit, self.capacity, self.brake_after = deposit, capacity, brake_after
        self.tokens, self.failures = capacity, 0

    def acquire(self, ctx, cause):
        braked = self.brake_after is not None and self.failures >= self.brake_after
        if braked or self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def release(self, ctx):
        self.tokens = min(self.tokens + 1, self.capacity)

    def on_success(self, ctx):
        self.failures = 0
        self.tokens = min(self.tokens + self.deposit, self.capacity)

    def on_failure(self, ctx, cause):
        self.failures += 1


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
