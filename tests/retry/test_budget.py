"""Retry budgets: tokens, brake, prices of retries, listeners, a budget a host."""

import asyncio
import math
import re
from itertools import pairwise

import aiohttp
import pytest
from calls import ended
from chains import (
    SAFELY,
    URL,
    after,
    bad_argument,
    raises_exactly,
    refused,
    retrying,
    session,
)

from aioretry_smithy import (
    HedgingClient,
    HttpRequest,
    RetryBudget,
    RetryBudgetListener,
    RetryingRpcClient,
    rpc,
)

RESET = aiohttp.ClientOSError(104, "reset")
REFUSED = ConnectionRefusedError(111, "refused")


async def tokens_after(failure, **settings):
    """Return what is left when a failure was retried, with success."""
    budget = RetryBudget(deposit=0.0, **settings)
    async with session([failure, 200], retrying(SAFELY, limiter=budget)) as client:
        await client.get(URL)
    return budget.tokens


class TestPrice:
    """A retry costs what the failure before it has cost the server."""

    @pytest.mark.parametrize("failure", [502, 503, refused(), RESET], ids=repr)
    async def test_after_an_unserved_failure(self, failure):
        """It did not reach the server, or was turned away at once."""
        assert 9.9 == await tokens_after(failure, unserved_cost=0.1)

    @pytest.mark.parametrize(
        "failure",
        [
            500,
            504,
            429,
            (503, {"Retry-After": "0"}, b""),
            TimeoutError(),
            aiohttp.ClientPayloadError("cut"),
        ],
        ids=repr,
    )
    async def test_after_any_other(self, failure):
        """The server was at work, or says when to come back."""
        assert 9.0 == await tokens_after(failure, unserved_cost=0.1)

    @pytest.mark.parametrize("failure", [503, RESET], ids=repr)
    async def test_after_a_late_one(self, failure):
        """A server that takes a second has worked."""
        late = after(1.0, failure)

        assert 9.0 == await tokens_after(late, unserved_cost=0.1)

    async def test_a_part_of_a_token_pays_for_it(self):
        """But for no other."""
        budget = RetryBudget(deposit=0.0, capacity=1, unserved_cost=0.3)
        cheap, dear = ended(503), ended(500)
        paid = [budget.acquire(each, None) for each in (cheap, dear, cheap, cheap)]

        assert [True, False, True, True] == paid
        assert 0.1 == budget.tokens
        assert not budget.acquire(cheap, None)

    async def test_it_may_be_free(self):
        """Also where no token is left."""
        budget = RetryBudget(capacity=1, unserved_cost=0)
        budget.acquire(ended(500), None)

        assert all(budget.acquire(ended(503), None) for _ in range(100))
        assert 0.0 == budget.tokens

    async def test_one_that_is_not_made_gets_back_what_it_cost(self):
        """Whatever was paid for others meanwhile, in this budget or another one."""
        budget, other = RetryBudget(unserved_cost=0.1), RetryBudget(unserved_cost=0.5)
        cheap, dear = ended(503), ended(500)
        for each in (cheap, dear):
            assert budget.acquire(each, None)
            assert other.acquire(each, None)

        assert (8.9, 8.5) == (budget.tokens, other.tokens)
        budget.release(cheap)
        other.release(cheap)
        assert (9.0, 9.0) == (budget.tokens, other.tokens)
        budget.release(dear)
        assert 10.0 == budget.tokens

    async def test_a_hedge_of_what_is_under_way_costs_a_token(self):
        """The server may be at work; one that follows a failure at once does not."""
        budget = RetryBudget(unserved_cost=0.1)
        hedging = HedgingClient.new_decorator(0.5, limiter=budget)
        async with session([after(0.7, 200), 200], hedging) as client:
            await client.get(URL)
        assert 9.0 == budget.tokens

        async with session([503, 200], hedging) as client:
            await client.get(URL)
        assert 8.9 == budget.tokens

    @pytest.mark.parametrize("unserved", [RESET, REFUSED], ids=repr)
    async def test_functions_pay_by_what_they_raise(self, unserved):
        """A broken or a refused connection, then a mistake of the server's own."""
        budget = RetryBudget(unserved_cost=0.1, deposit=0.0)
        raised = [unserved, TimeoutError()]

        @rpc(RetryingRpcClient.new_decorator(SAFELY, limiter=budget), idempotent=True)
        async def load():
            if raised:
                raise raised.pop(0)

        await load()

        assert 8.9 == budget.tokens


class TestUnservedFailures:
    """An unserved failure presses the brake by a part."""

    async def test_ten_press_it_as_one(self):
        """After thirty there is no retry."""
        budget = RetryBudget(brake_after=3, unserved_cost=0.1)
        seen = []
        for _ in range(30):
            budget.on_failure(ended(503), None)
            seen.append(budget.failures_in_a_row)
            is_permitted = budget.acquire(ended(503), None)
            assert is_permitted == (len(seen) < 30)

        assert [0.1, 0.2, 0.3, 1, 2.9, 3] == [*seen[:3], seen[9], *seen[-2:]]
        assert [int, int] == [type(seen[9]), type(seen[-1])]

    async def test_connections_that_break_together_are_one_failure(self):
        """Of the same weight."""
        budget = RetryBudget(unserved_cost=0.1, brake_after=None)
        retry = retrying(SAFELY, max_total_attempts=1, limiter=budget)
        async with session([after(0.5, RESET)] * 9, retry) as client:
            calls = [client.get(URL) for _ in range(9)]
            await asyncio.gather(*calls, return_exceptions=True)

        assert 0.1 == budget.failures_in_a_row


CAUSE = ConnectionResetError()


class Diary(RetryBudgetListener):
    """Notes what it hears, and what it sees of the budget then."""

    def __init__(self):
        self.entries = []

    def on_retry_refused(self, budget, ctx):
        self.entries.append((budget.name, "refused", ctx))

    def on_tokens_changed(self, budget):
        self.entries.append((budget.name, budget.tokens))


@pytest.fixture
async def ctx():
    return ended()


def acquired(limiter, ctx, times):
    """Return how often of so many times leave is given."""
    return sum(limiter.acquire(ctx, CAUSE) for _ in range(times))


class TestTokens:
    """Retries cost tokens, and successes bring some."""

    async def test_it_starts_full(self, ctx):
        """As many retries as there are tokens go out at once."""
        budget = RetryBudget(brake_after=None)

        assert 10.0 == budget.tokens
        assert 10 == acquired(budget, ctx, 20)
        assert 0.0 == budget.tokens

    async def test_ten_deposits_of_a_tenth_pay_for_one_retry(self, ctx):
        """Floats would add up to 0.9999999999999999, and the tenth would not do."""
        budget = RetryBudget()
        acquired(budget, ctx, 10)
        for _ in range(9):
            budget.on_success(ctx)

        assert 0.9 == budget.tokens
        assert not budget.acquire(ctx, CAUSE)
        budget.on_success(ctx)
        assert 1.0 == budget.tokens
        assert budget.acquire(ctx, CAUSE)
        assert 0.0 == budget.tokens

    @pytest.mark.parametrize("parts", [3, 7, 10, 49])
    async def test_parts_do_not_drift(self, ctx, parts):
        """After a thousand retries the next one still costs as many successes."""
        budget = RetryBudget(deposit=1 / parts, capacity=5)
        acquired(budget, ctx, 5)
        granted = 0
        for _ in range(1000 * parts):
            budget.on_success(ctx)
            granted += budget.acquire(ctx, CAUSE)

        assert 1000 == granted

    async def test_it_never_holds_more_than_its_capacity(self, ctx):
        """Neither a success nor a token given back overfills it."""
        budget = RetryBudget(deposit=0.3, capacity=2.5)
        budget.on_success(ctx)
        budget.release(ctx)

        assert 2.5 == budget.tokens
        budget.acquire(ctx, CAUSE)
        for tokens in (1.8, 2.1, 2.4, 2.5):
            budget.on_success(ctx)
            assert tokens == budget.tokens

    def test_what_is_no_context_is_refused(self):
        """A request, for one, which does not say how its attempt ended."""
        request = HttpRequest("GET", URL)
        with bad_argument("ctx", request, "a ClientRequestContext, before the request"):
            RetryBudget().on_failure(request, CAUSE)

    async def test_a_part_of_a_token_pays_for_nothing(self, ctx):
        """A part of a token that is left is kept."""
        budget = RetryBudget(capacity=1.5)

        assert 1 == acquired(budget, ctx, 3)
        assert 0.5 == budget.tokens


class TestBrake:
    """No retries while nothing succeeds."""

    @pytest.mark.parametrize("brake_after", [1, 2, 3, 5])
    async def test_it_allows_one_retry_less_than_failures(self, ctx, brake_after):
        """Where everything fails, the failure that is to be retried counts."""
        budget = RetryBudget(brake_after=brake_after)
        allowed = 0
        for _ in range(20):
            budget.on_failure(ctx, CAUSE)
            allowed += budget.acquire(ctx, CAUSE)

        assert brake_after - 1 == allowed
        assert 20 == budget.failures_in_a_row
        assert 10.0 - allowed == budget.tokens

    async def test_one_success_lets_go(self, ctx):
        """Failures are counted anew from then on."""
        budget = RetryBudget(brake_after=2)
        for _ in range(2):
            budget.on_failure(ctx, CAUSE)
        assert not budget.acquire(ctx, CAUSE)

        budget.on_success(ctx)

        assert 0 == budget.failures_in_a_row
        assert budget.acquire(ctx, CAUSE)
        budget.on_failure(ctx, CAUSE)
        assert budget.acquire(ctx, CAUSE)
        budget.on_failure(ctx, CAUSE)
        assert not budget.acquire(ctx, CAUSE)

    async def test_a_number_beyond_all_floats_is_one(self, ctx):
        """It is never reached."""
        budget = RetryBudget(brake_after=10**400)
        budget.on_failure(ctx, CAUSE)

        assert budget.acquire(ctx, CAUSE)


class TestListeners:
    """Listeners hear of changes and refusals."""

    async def test_changes_and_refusals_are_told(self, ctx):
        """A call that changes nothing is not told; a refusal comes with the attempt."""
        diary = Diary()
        budget = RetryBudget("orders", deposit=0.5, capacity=1, listeners=[diary])
        budget.on_success(ctx)
        budget.on_failure(ctx, CAUSE)
        for act in (budget.acquire, budget.acquire):
            act(ctx, CAUSE)
        for act in (budget.on_success, budget.on_success, budget.release):
            act(ctx)

        assert [
            ("orders", 0.0),
            ("orders", "refused", ctx),
            ("orders", 0.5),
            ("orders", 1.0),
        ] == diary.entries


class TestPerHost:
    """A budget for each server."""

    async def test_hosts_do_not_pay_for_each_other(self):
        """One server that fails leaves the retries of the others alone."""
        limiter = RetryBudget.per_host(deposit=0.5, capacity=2, brake_after=3)
        orders, stock = ended(url="http://orders/"), ended(url="http://stock/")
        for _ in range(2):
            limiter.acquire(orders, CAUSE)
        limiter.on_failure(stock, CAUSE)

        assert not limiter.acquire(orders, CAUSE)
        assert limiter.acquire(stock, CAUSE)
        limiter.on_success(orders)
        limiter.release(stock)
        budgets = [limiter.budget_for(key) for key in ("orders:80", "stock:80")]
        assert [0.5, 2.0] == [budget.tokens for budget in budgets]
        assert [0, 1] == [budget.failures_in_a_row for budget in budgets]

    async def test_arguments_reach_every_budget(self):
        """Deposit, capacity, brake, cost and listeners, from an iterator too."""
        diary = Diary()
        limiter = RetryBudget.per_host(
            deposit=0.25,
            capacity=3,
            brake_after=7,
            unserved_cost=0.5,
            listeners=iter([diary]),
        )
        for url in ("http://orders/", "http://stock/"):
            limiter.acquire(ended(url=url), CAUSE)
            limiter.on_failure(ended(url=url), CAUSE)

        settings = "deposit=0.25, capacity=3, brake_after=7, unserved_cost=0.5"
        budget = limiter.budget_for("orders:80")
        assert f"RetryBudget('orders:80', {settings})" == repr(budget)
        assert f"RetryBudget.per_host({settings})" == repr(limiter)
        assert [("orders:80", 2.5), ("stock:80", 2.5)] == diary.entries
        assert 0.5 == budget.failures_in_a_row

    async def test_budgets_are_as_one_of_all_by_default(self):
        """Each is as large, and brakes as early."""
        shared = repr(RetryBudget("orders:80"))

        assert shared == repr(RetryBudget.per_host().budget_for("orders:80"))

    async def test_requests_without_a_host_share_one(self):
        """They are limited as well, and cost no host anything."""
        limiter = RetryBudget.per_host(capacity=1)

        assert 1 == sum(
            limiter.acquire(ended(url=url), CAUSE) for url in ("/here", "/there", "")
        )
        assert "no-host" == limiter.budget_for(None).name
        assert 0.0 == limiter.budget_for(None).tokens
        assert 1.0 == limiter.budget_for("no-host").tokens

    def test_the_number_of_budgets_is_bounded(self):
        """A crawler meets any number of hosts; the least recently used goes."""
        limiter = RetryBudget.per_host()
        first = limiter.budget_for("first:80")
        for number in range(1024):
            limiter.budget_for(f"{number}:80")

        assert first is not limiter.budget_for("first:80")

    def test_budgets_are_of_the_class_that_was_asked(self):
        """A subclass has its own rules for every host."""

        class Generous(RetryBudget):
            def acquire(self, ctx, cause):
                return True

        limiter = Generous.per_host()

        assert isinstance(limiter.budget_for("a:80"), Generous)
        assert repr(limiter).startswith("Generous.per_host(")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"deposit": -0.1}, "deposit: -0.1 (expected: finite and >= 0)"),
        ({"deposit": math.nan}, "deposit: nan (expected: finite and >= 0)"),
        ({"deposit": math.inf}, "deposit: inf (expected: finite and >= 0)"),
        ({"deposit": True}, "deposit: True (expected: finite and >= 0)"),
        ({"deposit": "0.1"}, "deposit: '0.1' (expected: finite and >= 0)"),
        ({"capacity": 0.999}, "capacity: 0.999 (expected: finite and >= 1)"),
        ({"capacity": math.inf}, "capacity: inf (expected: finite and >= 1)"),
        ({"capacity": math.nan}, "capacity: nan (expected: finite and >= 1)"),
        ({"capacity": None}, "capacity: None (expected: finite and >= 1)"),
        ({"brake_after": 0}, "brake_after: 0 (expected: an int >= 1, or None)"),
        ({"brake_after": 3.0}, "brake_after: 3.0 (expected: an int >= 1, or None)"),
        ({"brake_after": True}, "brake_after: True (expected: an int >= 1, or None)"),
        ({"unserved_cost": -0.1}, "unserved_cost: -0.1 (expected: >= 0 and <= 1)"),
        ({"unserved_cost": 1.1}, "unserved_cost: 1.1 (expected: >= 0 and <= 1)"),
        ({"unserved_cost": True}, "unserved_cost: True (expected: >= 0 and <= 1)"),
        ({"unserved_cost": math.nan}, "unserved_cost: nan (expected: >= 0 and <= 1)"),
        ({"unserved_cost": None}, "unserved_cost: None (expected: >= 0 and <= 1)"),
        ({"listeners": 5}, "listeners: 5 (expected: RetryBudgetListener objects)"),
        ({"listeners": "a"}, "listeners: 'a' (expected: RetryBudgetListener objects)"),
    ],
)
@pytest.mark.parametrize("make", [RetryBudget, RetryBudget.per_host])
def test_bad_arguments_are_rejected(make, arguments, message):
    """At once, and not when the first host is met."""
    with raises_exactly(message):
        make(**arguments)


@pytest.mark.parametrize("name", ["", 5, True, b"orders"])
def test_bad_names_are_rejected(name):
    """A name is a str that says something."""
    with pytest.raises(ValueError, match=re.escape(f"name: {name!r} (expected: a str")):
        RetryBudget(name)


def test_names_count_up_unless_given():
    """Budgets can be told apart in a log."""
    names = [RetryBudget().name for _ in range(3)]
    numbers = [int(name.removeprefix("retry-budget-")) for name in names]

    assert [1, 1] == [after - before for before, after in pairwise(numbers)]
    assert "orders" == RetryBudget("orders").name
