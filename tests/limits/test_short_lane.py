"""Limits on calls that take the short lane, which make no context."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from chains import URL, now, retrying

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ClientRequestContext,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    FailFastError,
    HttpRequest,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    SessionBuilder,
    new_response,
)

places = ConcurrencyLimitingClient.new_decorator
rate = RateLimitingClient.new_decorator


class Samples(ConcurrencyLimit):
    """Keeps what it hears."""

    limit = 1

    def __init__(self):
        self.heard = []

    def on_sample(self, round_trip, in_flight, dropped):
        self.heard.append((round_trip, in_flight, dropped))


@pytest.fixture
def answers(monkeypatch):
    """Answer in place of aiohttp, one after the other, a second each."""
    given = []

    async def _request(self, method, url, **options):
        status, headers = given.pop(0)
        await asyncio.sleep(1.0)
        return new_response(HttpRequest(method, url), status, headers=headers)

    monkeypatch.setattr(aiohttp.ClientSession, "_request", _request)
    return given


@pytest.fixture
def contexts(monkeypatch):
    """The contexts that were made."""
    made = []
    construct = ClientRequestContext.__init__

    def count(context, *arguments, **options):
        made.append(context)
        construct(context, *arguments, **options)

    monkeypatch.setattr(ClientRequestContext, "__init__", count)
    return made


def build(*decorators):
    builder = SessionBuilder()
    for decorator in decorators:
        builder.decorator(decorator)
    return builder.build()


async def end_of(client):
    async with client.get(URL) as response:
        return response.status, now()


async def test_a_call_that_waits_for_nothing_makes_no_context(answers, contexts):
    """Its place and its turn are there at once; a limit learns from it too."""
    answers += [(200, None)] * 2
    limit = Samples()
    async with build(places(limit), rate(RateLimit(1)), retrying()) as client:
        ends = [await end_of(client), await end_of(client)]

    assert [(200, 1.0), (200, 2.0)] == ends
    assert [(1.0, 1, False)] * 2 == limit.heard
    assert 0 == limit.in_flight
    assert [] == contexts


async def test_a_call_that_has_to_wait_takes_the_ordinary_lane(answers, contexts):
    """There it waits for its place."""
    answers += [(200, None)] * 2
    async with build(places(1)) as client:
        ends = await asyncio.gather(end_of(client), end_of(client))

    assert [(200, 1.0), (200, 2.0)] == ends
    assert 1 == len(contexts)


async def test_a_first_attempt_that_fails_keeps_its_place_and_its_turn(answers):
    """They are handed over, and given back once."""
    answers += [(503, {"RateLimit": '"a";r=0;t=2'}), (200, None)]
    limit = Samples()
    chain = places(limit), rate(RateLimit.from_headers()), retrying(0.0)
    async with build(*chain) as client:
        end = await end_of(client)

    assert (200, 4.0) == end
    assert [(1.0, 1, True), (1.0, 1, False)] == limit.heard
    assert 0 == limit.in_flight


async def test_what_a_success_says_of_the_rate_is_learnt(answers):
    """The next request waits for the reset."""
    answers += [(200, {"RateLimit": '"a";r=0;t=5'}), (200, None)]
    decorator = RateLimitingClient.new_per_host_decorator(
        lambda key: RateLimit.from_headers()
    )
    async with build(decorator) as client:
        answers.insert(0, (200, None))
        ends = [await end_of(client) for _ in range(3)]

    assert [(200, 1.0), (200, 2.0), (200, 8.0)] == ends


async def test_what_another_client_stops_takes_neither_place_nor_turn(answers):
    """The circuit is open when the others have given theirs."""
    answers += [(200, None)]
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    limit = ConcurrencyLimit.fixed(1)
    breaking = CircuitBreakerClient.new_decorator(breaker)
    async with build(places(limit), rate(RateLimit(1)), breaking) as client:
        with pytest.raises(FailFastError):
            await client.get(URL)

        assert 0 == limit.in_flight

        breaker.enter_state(CircuitState.CLOSED)

        assert (200, 1.0) == await end_of(client)


async def test_a_function_that_knows_no_limit_is_found_out(answers):
    """As in the ordinary lane, with a log of the call."""
    limit = ConcurrencyLimit.fixed(lambda: 0)
    async with build(places(limit)) as client:
        with pytest.raises(ValueError, match="^limit: 0 ") as caught:
            await client.get(URL)

    assert ValueError is type(RequestLog.of(caught.value).response_cause)


async def test_a_limit_for_each_host_is_found_by_the_host(answers, contexts):
    """Once it is made, by the first call to it."""
    answers += [(200, None)] * 3
    decorator = ConcurrencyLimitingClient.new_per_host_decorator(lambda key: 1)
    async with build(decorator) as client:
        for _ in range(3):
            await end_of(client)

    assert 1 == len(contexts)
