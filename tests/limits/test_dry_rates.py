"""Rates that decide, count and log, but do not act."""

from __future__ import annotations

import asyncio
import logging

import pytest
from chains import URL, now, session

from aioretry_smithy import (
    RateLimit,
    RateLimitingClient,
    RequestLog,
    SessionBuilder,
    unwrap,
)


def watching(limit, **settings):
    return RateLimitingClient.new_decorator(limit, enforce=False, **settings)


def weight(ctx, request):
    return float(request.headers.get("weight", 1))


@pytest.fixture
def said(caplog):
    """What was logged of single requests."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")

    def lines():
        return [
            record.getMessage()
            for record in caplog.records
            if record.levelno == logging.DEBUG
        ]

    return lines


async def ends_of(client, *weights):
    """Make calls at once; return when each was answered."""

    async def end_of(each):
        async with client.get(URL, headers={"weight": f"{each}"}):
            return now()

    return await asyncio.gather(*map(end_of, weights))


REQUEST = "<HttpRequest GET http://localhost/orders>"


async def test_nobody_waits_and_each_takes_its_turn_in_the_count(said, beside):
    """So the waits are those that there would have been."""
    limit = RateLimit(1, burst=2)
    async with session([200] * 4, watching(limit), *beside) as client:
        assert [0.0] * 4 == await ends_of(client, 1, 1, 1, 1)

    assert [
        f"would have waited {seconds} s for RateLimit(1, 1.0, burst=2): {REQUEST}"
        for seconds in ("1.000", "2.000")
    ] == said()
    assert 0 == limit.pending


async def test_nobody_is_refused_and_who_would_be_takes_nothing(said, beside):
    """A turn exactly at the timeout is in time."""
    chain = watching(RateLimit(1, burst=1), timeout=1.0)
    async with session([200] * 4, chain, *beside) as client:
        await ends_of(client, 1, 1, 1, 1)

    limit = "RateLimit(1, 1.0, burst=1)"
    words = "no turn within the timeout of 1.0 s; next in 2.000 s"
    refused = f"would have refused {REQUEST}: {limit}: {words}"
    assert [f"would have waited 1.000 s for {limit}: {REQUEST}", refused, refused] == (
        said()
    )


async def test_a_turn_that_is_a_sum_of_floats_is_in_time_too(said):
    """A hundred times 0.01 s are more than 1 s."""
    chain = watching(RateLimit(100, burst=1), timeout=1.0)
    async with session([200] * 103, chain) as client:
        await ends_of(client, *[1] * 103)

    refused = ["would have refused" in line for line in said()]
    assert [False] * 100 + [True] * 2 == refused


async def test_a_deadline_counts_as_ever(said):
    """The turn has to come before it."""
    chain = watching(RateLimit(1, burst=1))
    async with session([200] * 2, chain, timeout=1.0) as client:
        await ends_of(client, 1, 1)

    assert [True] == ["would have refused" in line for line in said()]


async def test_the_limit_that_is_named_is_the_one_whose_turn_is_latest(said, beside):
    """Of several all are counted, or none."""
    both = [RateLimit(1, burst=5), RateLimit(1, burst=10, cost=weight)]
    async with session([200] * 4, watching(both, timeout=9.0), *beside) as client:
        assert [0.0] * 4 == await ends_of(client, 10, 9, 3, 0)

    assert ["would have waited 9.000", "would have refused <Htt"] == [
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


async def test_a_server_that_says_nothing_is_left_is_asked_all_the_same(said, beside):
    """Its later answers are learnt from, also those that would not have come."""

    def answer(seconds):
        return 200, {"RateLimit": f'"a";r=0;t={seconds}'}, b""

    chain = watching(RateLimit.from_headers(), timeout=10.0)
    async with session([answer(5), answer(50), 200], chain, *beside) as client:
        for _ in range(3):
            await ends_of(client, 1)

    assert ["would have waited 5.000", "would have refused <Htt"] == [
        line[:23] for line in said()
    ]


async def test_after_a_wait_that_was_cut_nobody_finds_out_before(said):
    """Only who has waited does."""
    chain = watching(RateLimit.from_headers(max_wait=5.0))
    async with session([(429, {"Retry-After": "99"}, b""), 200, 200], chain) as client:
        await ends_of(client, 1)
        await ends_of(client, 1)
        await asyncio.sleep(5.0)
        await ends_of(client, 1)

    assert ["would have waited 5.000"] == [line[:23] for line in said()]


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


async def test_the_log_shows_no_wait():
    """There was none."""
    async with session([200] * 2, watching(RateLimit(1, burst=1))) as client:
        await ends_of(client, 1)
        async with client.get(URL) as response:
            log = RequestLog.of(response)

    assert (None, None) == (log.delay, log.delay_source)


def test_it_says_so():
    """In the description of the chain."""
    builder = SessionBuilder().decorator(watching(RateLimit(5)))

    shown = "RateLimitingClient(RateLimit(5, 1.0), timeout=None, enforce=False)"
    assert shown in builder.describe()


@pytest.mark.parametrize("enforce", [None, 0, "no"], ids=repr)
def test_other_values_are_refused(enforce):
    """Only a bool says it."""
    with pytest.raises(ValueError, match=r"^enforce: .* \(expected: True or False\)$"):
        RateLimitingClient.new_decorator(RateLimit(5), enforce=enforce)
