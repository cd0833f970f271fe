"""A retry budget that processes share by Redis."""

import asyncio
import gc
import weakref

import pytest
from calls import ended
from chains import Scripted, log_of, now, retrying, session
from fake_redis import FakeRedis, WaitingRedis

from aioretry_smithy import RetryBudgetListener
from aioretry_smithy.redis import SharedRetryBudget

LOST = ConnectionError("no route")


class Purse(RetryBudgetListener):
    """Notes the events."""

    def __init__(self):
        self.heard = []

    def on_retry_refused(self, budget, ctx):
        self.heard.append((budget.name, "refused"))

    def on_tokens_changed(self, budget):
        self.heard.append((budget.name, budget.tokens))


@pytest.fixture
def redis():
    return FakeRedis(latency=0.25)


def budgets(redis, number=2, **settings):
    """As many processes."""
    settings = {"capacity": 2, "brake_after": None} | settings
    return [SharedRetryBudget(redis, "orders", **settings) for _ in range(number)]


async def acquired(budget, times=1):
    contexts = [ended(503) for _ in range(times)]
    return [ctx for ctx in contexts if await budget.acquire(ctx, None)]


async def all_told():
    """Wait until all outcomes are reported."""
    await asyncio.sleep(2.0)


class TestShared:
    """Processes know of each other's retries and outcomes."""

    async def test_tokens_are_those_of_all(self, redis):
        """A token that one has spent is missing for the other."""
        one, other = budgets(redis)

        assert 2 == len(await acquired(one, 3))
        assert [] == await acquired(other)
        assert (0.0, 0.0) == (one.tokens, other.tokens)
        assert "orders" == one.name

    async def test_successes_of_one_pay_for_retries_of_another(self, redis):
        """They are reported together, after a second."""
        one, other = budgets(redis, deposit=0.5)
        await acquired(one, 2)
        asked, begun = redis.questions, now()
        for _ in range(4):
            other.on_success(ended(200))
        await asyncio.sleep(1.5)

        assert (asked + 1, begun + 1.5) == (redis.questions, now())
        assert 2 == len(await acquired(one, 3))

    async def test_failures_in_a_row_are_those_of_all(self, redis):
        """A success of any of them lets the brake go."""
        one, other = budgets(redis, brake_after=3)
        for budget in one, one, other:
            budget.on_failure(ended(503), None)
        await all_told()

        assert [] == await acquired(one)
        assert [] == await acquired(other)
        assert 3 == one.failures_in_a_row
        other.on_success(ended(200))
        assert 0 == other.failures_in_a_row
        assert 1 == len(await acquired(other))
        assert 1 == len(await acquired(one))

    async def test_a_retry_tells_what_was_before_it(self, redis):
        """No success is too late for the retry after it."""
        (budget,) = budgets(redis, 1, deposit=1.0, brake_after=1)
        await acquired(budget, 2)
        budget.on_failure(ended(503), None)
        budget.on_success(ended(200))

        assert 1 == len(await acquired(budget))
        await all_told()

    async def test_listeners_hear_what_their_process_learns(self, redis):
        """From a budget of the same name."""
        purse = Purse()
        (budget,) = budgets(redis, 1, listeners=[purse])
        await acquired(budget, 3)

        changes = [("orders", 1.0), ("orders", 0.0), ("orders", "refused")]
        assert changes == purse.heard

    async def test_unserved_failures_and_the_retries_after_them_cost_a_part(
        self, redis
    ):
        """For all of them, whoever has met them."""
        one, other = budgets(redis, 2, brake_after=3, unserved_cost=0.25)
        for status in 503, 503, 500, 503:
            one.on_failure(ended(status), None)

        assert 4 == len(await acquired(one, 4))
        assert (1.0, 1.75) == (one.tokens, one.failures_in_a_row)
        other.on_failure(ended(500), None)
        assert 4 == len(await acquired(other, 4))
        assert (0.0, 2.75) == (other.tokens, other.failures_in_a_row)
        one.on_failure(ended(502), None)
        await all_told()
        assert [] == await acquired(other)
        assert 3 == other.failures_in_a_row

    async def test_a_retry_that_is_not_made_gives_back_what_it_cost(self, redis):
        """One that is given up, and one that was cancelled while it paid."""
        one, other = budgets(redis, 2, unserved_cost=0.25)
        first, *_ = await acquired(one, 8)
        one.release(first)
        await all_told()
        task = asyncio.create_task(acquired(one))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait([task])
        await all_told()

        assert 1 == len(await acquired(other, 2))


class TestAway:
    """A Redis that does not answer."""

    async def test_retries_after_unserved_failures_are_paid_for_afterwards(self, redis):
        """With what they cost then."""
        one, other = budgets(redis, unserved_cost=0.25)
        redis.failure = LOST
        first, *_ = await acquired(one, 8)
        one.release(first)
        redis.failure = None
        await asyncio.sleep(3.0)

        assert 1 == len(await acquired(other, 3))

    async def test_the_process_decides_alone(self, redis, caplog):
        """By its own tokens, which are as many as it knew of."""
        redis.failure = LOST
        one, other = budgets(redis)

        assert 2 == len(await acquired(one, 3))
        assert 2 == len(await acquired(other, 3))
        # Each was asked once more before it was believed.
        assert 4 == redis.questions
        warning = (
            "SharedRetryBudget('orders', deposit=0.1, capacity=2, brake_after=None): "
            "no answer from the storage, so each process decides about retries alone: "
            "ConnectionError('no route')"
        )
        assert [warning] * 2 == caplog.messages

    async def test_what_happens_meanwhile_is_told_afterwards(self, redis):
        """Once it is back, and not twice."""
        one, other = budgets(redis, deposit=0.5)
        await acquired(other, 2)
        redis.failure = LOST
        for _ in range(4):
            one.on_success(ended(200))
            await asyncio.sleep(1.0)
        redis.failure = None
        assert {"aioretry_smithy:retry-budget:orders": (0.0, 0)} == redis.purses
        one.on_failure(ended(503), None)
        await asyncio.sleep(4.0)

        assert {"aioretry_smithy:retry-budget:orders": (2.0, 1)} == redis.purses
        assert 2 == len(await acquired(other, 3))

    async def test_a_budget_is_never_in_debt(self, redis):
        """However much the processes spent on their own."""
        one, other = budgets(redis, deposit=1.0)
        redis.failure = LOST
        await acquired(one, 2)
        await acquired(other, 2)
        redis.failure = None
        await asyncio.sleep(3.0)
        one.on_success(ended(200))

        assert 1 == len(await acquired(one, 2))

    async def test_a_deadline_is_kept(self, redis):
        """Which says nothing of Redis."""
        (budget,) = budgets(redis, 1)
        ctx = ended(503)
        ctx.root.set_response_timeout(0.1)

        assert await budget.acquire(ctx, None) is True
        assert 0.1 == now()
        await all_told()
        assert not budget._storage.is_down
        # One was paid for twice, and the second token put back.
        assert 1.0 == budget.tokens

    async def test_a_retry_that_is_cancelled_while_it_pays_puts_its_token_back(
        self, redis
    ):
        """The next retry of any process has it."""
        budget, other = budgets(redis)
        task = asyncio.create_task(acquired(budget))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait([task])
        await all_told()

        assert 2 == len(await acquired(other, 3))

    async def test_retries_of_short_calls_find_out_that_redis_is_away(
        self, redis, caplog
    ):
        """A second after the first question, though each gives up before."""
        redis.latency = 60.0
        (budget,) = budgets(redis, 1, capacity=9)
        for number in range(5):
            ctx = ended(503)
            ctx.root.set_response_timeout(0.24)

            assert await budget.acquire(ctx, None) is True
            assert min(0.24 * (number + 1), 1.0) == pytest.approx(now())

        (message,) = caplog.messages
        assert "so each process decides about retries alone" in message
        await asyncio.sleep(2.0)

    async def test_a_cancelled_question_loses_no_outcome(self, redis):
        """They are reported with the next one."""
        (budget,) = budgets(redis, 1, brake_after=2)
        budget.on_failure(ended(503), None)
        task = asyncio.create_task(acquired(budget))
        await asyncio.sleep(0.1)
        budget.on_failure(ended(503), None)
        task.cancel()
        await asyncio.wait([task])

        assert [] == await acquired(budget)
        await all_told()


async def test_many_retries_at_once_need_few_connections(caplog):
    """Each is asked for in Redis, where a client has no more than a hundred."""
    redis = FakeRedis(latency=0.001)
    one, other = budgets(redis, capacity=150)

    paid = await asyncio.gather(
        *(acquired(budget) for _ in range(200) for budget in (one, other))
    )

    assert 150 == sum(map(len, paid))
    assert [] == caplog.messages


async def test_a_retrying_client_asks_it(redis):
    """And reports the outcomes of attempts to it."""
    one, other = budgets(redis, brake_after=3)
    async with Scripted([503, 503, 200], retrying(0.5, limiter=one)) as scripted:
        assert 200 == await scripted.get()
    async with Scripted([503] * 9, retrying(0.5, limiter=other)) as scripted:
        assert [503, 503] == [await scripted.get() for _ in range(2)]
        await all_told()

    assert (0.1, 2) == (round(other.tokens, 9), scripted.sent)


async def test_a_refused_call_names_it(redis):
    """With what is left for all processes."""
    one, other = budgets(redis)
    await acquired(other, 2)
    log = await log_of(session([503, 200], retrying(limiter=one)))

    words = "retry budget 'orders', 0 tokens left, a retry costs 1"
    assert words == log.limiter


async def test_no_timer_and_no_task_is_left(redis):
    """A budget that is dropped goes after its last report."""
    (budget,) = budgets(redis, 1)
    budget.on_success(ended(200))
    await all_told()
    dropped = weakref.ref(budget)
    del budget
    gc.collect()

    assert None is dropped()


async def test_a_timer_of_a_loop_that_has_ended_is_not_waited_for(redis):
    """The next outcome after its time begins another one."""
    (budget,) = budgets(redis, 1)
    budget._report_at = now() + 1.0
    await asyncio.sleep(1.5)
    budget.on_success(ended(200))
    await all_told()

    assert 1 == redis.questions


@pytest.mark.parametrize(
    ("argument", "settings"),
    [
        ("name: None ", {"name": None}),
        ("name: '' ", {"name": ""}),
        ("deposit: -1 ", {"deposit": -1}),
        ("capacity: 0 ", {"capacity": 0}),
        ("brake_after: 0 ", {"brake_after": 0}),
        ("listeners: [1] ", {"listeners": [1]}),
    ],
)
def test_bad_arguments_are_refused(redis, argument, settings):
    """As by a budget of one process; the name is no default."""
    with pytest.raises(ValueError) as caught:
        SharedRetryBudget(redis, **{"name": "orders"} | settings)

    assert str(caught.value).startswith(argument)


@pytest.mark.parametrize("client", [WaitingRedis(), FakeRedis, "redis://localhost"])
def test_a_client_that_is_not_awaited_is_refused(client):
    """A class is none either, nor is a URL, which may hold a password."""
    with pytest.raises(ValueError) as caught:
        SharedRetryBudget(client, "orders")

    expected = f"redis: {type(client)!r} (expected: a redis.asyncio.Redis)"
    assert expected == str(caught.value)


async def test_a_name_that_is_no_text_is_one_too(redis):
    """Redis gets a name that UTF-8 can encode."""
    budget = SharedRetryBudget(redis, "\udcff")
    await acquired(budget)

    assert ["aioretry_smithy:retry-budget:\\udcff"] == [*redis.purses]
