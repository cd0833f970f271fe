"""Limits under random schedules: never too many at once, and no place is ever lost."""

import asyncio
import random
from asyncio import get_running_loop
from contextlib import contextmanager

import aiohttp
import pytest
from chains import URL, connected, now, pass_on, retrying
from fake_responses import FakeConnection, unending
from hypothesis import given, settings
from hypothesis import strategies as st

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    HttpRequest,
    RateLimit,
    RateLimitingClient,
    SessionBuilder,
)
from aioretry_smithy.testing import VirtualTimeLoop

schedules = st.integers(0, 2**64).map(random.Random)


class HeldConnection(FakeConnection):
    """The connection of a response, given back once by whatever aiohttp calls."""

    protocol = transport = None

    def release(self):
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()

    close = release


class Server:
    """Stands in for aiohttp and the server; knows what is under way, and what began.

    Args:
        chance: Decides what becomes of each request.
    """

    def __init__(self, chance):
        self._chance = chance
        self.under_way = self.most = 0
        self.began = []

    async def request(self, session, method, url, *, headers, **options):
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.began.append((now(), int(headers["number"])))
        try:
            await asyncio.sleep(self._chance.choice([0.0, 0.0, 0.5, 1.0]))
            return self._respond(method, url)
        except BaseException:
            self._end()
            raise

    def _respond(self, method, url):
        status = self._chance.choice([200, 200, 404, 503, None])
        if status is None:
            raise TimeoutError
        response = unending(HttpRequest(method, url), status, start=b"x")
        if self._chance.random() < 0.3:
            # The body was there with the headers, so the connection is free.
            self._end()
            return response
        response._closed, response._connection = False, HeldConnection()
        response._connection.add_callback(self._end)
        return response

    def _end(self):
        self.under_way -= 1


@contextmanager
def in_place_of_aiohttp(request):
    """Let all sessions send by a function."""
    original = aiohttp.ClientSession._request
    aiohttp.ClientSession._request = request
    try:
        yield
    finally:
        aiohttp.ClientSession._request = original


async def call(client, number, end, seconds):
    """Make a call, and leave its body in one of the ways in which people do."""
    try:
        response = await client.get(URL, headers={"number": f"{number}"})
    except (aiohttp.ClientError, TimeoutError):
        return
    try:
        await asyncio.sleep(seconds)
    finally:
        if end != "drop":
            getattr(response, end)()
        # A traceback would keep it. aiohttp finds out what is dropped unread.
        del response


async def run(chance, builder):
    """Begin calls at random moments, and cancel some at others."""
    tasks = []
    async with builder.build() as client:
        for number in range(chance.randint(1, 10)):
            end = chance.choice(["release", "close", "drop"])
            seconds = chance.choice([0.0, 0.25, 1.0])
            tasks.append(asyncio.create_task(call(client, number, end, seconds)))
            for _ in range(chance.choice([0, 0, 1, 3, 8])):
                await asyncio.sleep(0)
            await asyncio.sleep(chance.choice([0.0, 0.25]))
            if chance.random() < 0.4:
                chance.choice(tasks).cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def check_rate(times, rate, burst):
    """Check all windows of time from one request to another."""
    for first, begun in enumerate(times):
        for last in range(first, len(times)):
            assert last - first + 1 <= burst + rate * (times[last] - begun) + 1e-3


async def take_turns(many):
    for _ in range(many):
        await asyncio.sleep(0)


async def answer_in_turns(session, method, url, **options):
    await take_turns(3)
    response = unending(HttpRequest(method, url))
    response._closed, response._connection = False, HeldConnection()
    return response


async def call_in_turns(client):
    async with client.get(URL):
        await take_turns(3)


@pytest.mark.parametrize(
    "inside", [(), (pass_on,)], ids=["alone", "beside a decorator"]
)
@pytest.mark.parametrize("waits", [False, True], ids=["free", "taken"])
async def test_call_that_is_cancelled_at_any_await_leaves_its_place(inside, waits):
    """Whether it waits for its place, for the answer or in the body."""
    ends = set()
    for many in range(20):
        limit = ConcurrencyLimit.fixed(1)
        with in_place_of_aiohttp(answer_in_turns):
            async with connected(
                None, ConcurrencyLimitingClient.new_decorator(limit), *inside
            ) as client:
                place = limit._try_enter(get_running_loop()) if waits else None
                task = asyncio.create_task(call_in_turns(client))
                if place is not None:
                    await take_turns(3)
                    place.release()
                await take_turns(many)
                task.cancel()
                await asyncio.wait([task])
                ends.add(task.cancelled())

                assert (0, 0) == (limit.in_flight, limit.pending)

                await call_in_turns(client)

    assert {True, False} == ends


@settings(max_examples=5 * settings.default.max_examples)
@given(schedules)
def test_no_schedule_exceeds_a_limit_or_loses_a_place(chance):
    """With bodies unread, responses dropped, retries, deadlines and cancellations."""
    most, rate, burst = (
        chance.randint(1, 3),
        chance.choice([2, 5]),
        chance.choice([1, 3]),
    )
    places, turns = ConcurrencyLimit.fixed(most), RateLimit(rate, burst=burst)
    has_rate, retries = chance.random() < 0.5, chance.random() < 0.5
    builder = SessionBuilder()
    if has_rate:
        builder.decorator(RateLimitingClient.new_decorator(turns))
    builder.decorator(
        ConcurrencyLimitingClient.new_decorator(
            places,
            max_pending=chance.choice([None, 0, 2]),
            timeout=chance.choice([None, 0.0, 0.5, 3.0]),
        )
    )
    if retries:
        builder.decorator(retrying(0.5, max_total_attempts=2))
    if chance.random() < 0.5:
        builder.decorator(pass_on)
    builder.response_timeout(chance.choice([None, 1.5, 9.0]))
    server = Server(chance)
    with in_place_of_aiohttp(server.request):
        loop = VirtualTimeLoop()
        try:
            loop.run_until_complete(run(chance, builder))
        finally:
            loop.close()

    assert server.most <= most
    assert (0, 0, 0) == (places.in_flight, places.pending, server.under_way)
    assert 0 == turns.pending
    if has_rate:
        check_rate([at for at, _ in server.began], rate, burst)
    elif not retries:
        # Whoever is let in must wake first; a newcomer of that instant need not.
        numbers = [number for _, number in sorted(server.began)]
        assert sorted(numbers) == numbers
