"""A rate that processes share, of which requests cost more or less."""

from __future__ import annotations

import asyncio
import math

import pytest
from chains import Scripted, now, pass_on, retrying, session, status_and_log

pytest.importorskip("limits.aio")  # "limits" is a folder of these tests too

from limits.aio.storage import MemoryStorage

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    HttpRequest,
    RateLimitError,
    RateLimitingClient,
    SessionBuilder,
    new_response,
)
from aioretry_smithy.limits import SharedRateLimit

limiting = RateLimitingClient.new_decorator
MEMORY = "async+memory://"
URL = "http://a/"


def cost(ctx, request):
    """Take what a header says, which stands for an estimate."""
    return float(request.headers.get("Tokens", 1))


def shared(rate="10 per 8 seconds", cost=cost, storage=MEMORY, **settings):
    return SharedRateLimit(storage, rate, key="orders", cost=cost, **settings)


async def end_of(client, tokens):
    """Make a call; return its end and its status, or what was raised."""
    try:
        async with client.get(URL, headers={"Tokens": f"{tokens}"}) as response:
            return round(now(), 2), response.status
    except (RateLimitError, ValueError) as error:
        return round(now(), 2), type(error)


async def ends_of(limit, *tokens, outside=(), **settings):
    """Make calls at once; return their ends and statuses."""
    async with Scripted([200] * 99, limiting(limit, **settings), *outside) as scripted:
        calls = (end_of(scripted.session, each) for each in tokens)
        return await asyncio.gather(*calls)


@pytest.mark.parametrize(
    "outside",
    [(), (retrying(0.5),), (pass_on, retrying(0.5))],
    ids=["alone", "retried", "beside a decorator"],
)
async def test_requests_wait_for_what_they_cost(outside):
    """What was spent in the window before weighs less and less."""
    ends = await ends_of(shared(), 6, 4, 6, 1, outside=outside)

    assert [(0.0, 200), (0.0, 200), (12.0, 200), (12.8, 200)] == ends


async def test_limits_with_one_storage_and_key_are_one():
    """As in two processes."""
    storage = MemoryStorage()
    first, second = (shared(storage=storage) for _ in range(2))

    assert [(0.0, 200)] == await ends_of(first, 10)
    assert [(0.0, RateLimitError)] == await ends_of(second, 1, timeout=5.0)


async def test_a_fraction_is_rounded_up():
    """A storage counts whole numbers."""
    assert [(0.0, 200), (0.0, 200), (0.0, RateLimitError)] == await ends_of(
        shared("3/minute"), 0.001, 1.5, 0.5, timeout=0.0
    )


async def test_what_costs_nothing_passes():
    """Without a question, and past those that wait."""
    limit = shared()
    async with Scripted([200] * 9, limiting(limit)) as scripted:
        calls = [
            asyncio.create_task(end_of(scripted.session, each)) for each in (10, 10)
        ]
        await asyncio.sleep(1.0)

        assert (1.0, 200) == await end_of(scripted.session, 0)
        assert 1 == limit.pending
        await asyncio.gather(*calls)


async def test_a_cost_above_the_limit_is_refused_for_good():
    """There is one attempt; the error says both numbers, and no breaker counts it."""
    breaker = CircuitBreaker(minimum_request_threshold=1)
    counting = CircuitBreakerClient.new_decorator(breaker)
    limit = shared()
    async with Scripted([200], limiting(limit), counting, retrying(0.5)) as scripted:
        with pytest.raises(RateLimitError) as caught:
            await scripted.session.get(URL, headers={"Tokens": "10.5"})

        assert (200, 0.0) == (await scripted.get(), now())

    error = caught.value
    assert (limit, math.inf, 11, 10) == (
        *(error.limit, error.retry_in),
        *(error.cost, error.burst),
    )
    assert str(error).endswith("cost=cost): a cost of 11 is above the burst of 10")
    assert 0 == breaker.event_count.failure


async def test_a_heavy_request_that_is_refused_does_not_hold_up_a_light_one():
    """It has said nothing of what is left for that."""
    limit = shared("100/minute")
    ends = await ends_of(limit, 60, 50, 40, timeout=1.0)

    assert [(0.0, 200), (0.0, RateLimitError), (0.0, 200)] == ends


async def test_a_wait_is_in_the_log():
    """As that for any rate; each attempt pays for itself."""
    client = session([503, 200], limiting(shared(cost=lambda *_: 10)), retrying(0.5))
    status, log = await status_and_log(client)

    first, second = log.children
    assert (200, None) == (status, log.delay)
    assert (15.2, "rate_limit") == (round(first.delay, 2), first.delay_source)
    assert 0.0 == second.duration


@pytest.mark.parametrize("figure", [-1, math.inf, math.nan, None, "5"])
async def test_what_is_no_cost_is_the_callers_mistake(figure):
    """It learns of it, by one attempt."""
    limit = shared(cost=lambda ctx, request: figure)
    async with Scripted([200], limiting(limit), retrying(0.5)) as scripted:
        with pytest.raises(ValueError, match="^cost: "):
            await scripted.get()

        assert 0 == scripted.sent


async def test_what_cost_raises_is_the_callers_mistake():
    """There is no second attempt, whatever it is."""
    asked = []

    def raising(ctx, request):
        asked.append(request)
        raise TimeoutError("no tokenizer")

    limit = shared(cost=raising)
    async with Scripted([200], limiting(limit), retrying(0.5)) as scripted:
        with pytest.raises(TimeoutError, match="no tokenizer"):
            await scripted.session.get(URL)

    assert 1 == len(asked)


async def asking(ctx, request):
    """Not a plain function."""


@pytest.mark.parametrize(
    ("argument", "settings"),
    [
        ("cost: 5", {"cost": 5}),
        ("cost: <function asking", {"cost": asking}),
        ("actual: <function cost", {"actual": cost}),
        ("actual: <function cost", {"cost": None, "actual": cost}),
    ],
)
def test_bad_arguments_are_refused(argument, settings):
    """With the reason."""
    with pytest.raises(ValueError, match=f"^{argument}") as caught:
        shared(**settings)

    reason = "no storage takes back what it has counted"
    assert ("actual" in settings) == (reason in str(caught.value))


@pytest.mark.parametrize("cost", [None, cost], ids=["alike", "with costs"])
async def test_nothing_is_settled(cost):
    """For the same reason."""
    response = new_response(HttpRequest("GET", URL))
    with pytest.raises(ValueError, match="^limit: .*no storage takes back what"):
        shared(cost=cost).settle(response, 5)


def test_no_cost_and_no_actual_may_be_given():
    """None is as nothing."""
    assert repr(shared(cost=None)) == repr(shared(cost=None, actual=None))


def test_it_describes_itself_with_its_cost():
    """In the chain as well."""
    limit = shared()

    expected = "SharedRateLimit(MemoryStorage, '10 per 8 seconds', key='orders', "
    assert f"{expected}cost=cost)" == repr(limit)
    assert repr(limit) in SessionBuilder().decorator(limiting(limit)).describe()
