"""The decorators that the how-tos print hold in more cases than they show."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path

import aiohttp
import pytest
from chains import chain, session

from aioretry_smithy import (
    Backoff,
    RetryingClient,
    RetryStrategy,
)
from aioretry_smithy.testing import ScriptedTransport

pytestmark = pytest.mark.virtual_time

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
URL = "http://localhost/"


@pytest.fixture
def recipe(monkeypatch):
    """A function that returns what an example defines, without running it."""

    def load(example):
        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "run", lambda main: main.close())
            return runpy.run_path(str(EXAMPLES / f"{example}.py"))

    return load


class Tokens:
    """Gives out tokens, the newest of which is valid."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.asked = 0

    async def fetch(self):
        self.asked += 1
        await asyncio.sleep(1.0)
        if self.failures and (failure := self.failures.pop(0)):
            raise failure
        return f"token-{self.asked}"

    def answer(self, ctx, request):
        valid = f"Bearer token-{self.asked}"
        return 200 if request.headers["Authorization"] == valid else 401


@pytest.fixture
def refreshing(recipe):
    """A function that makes a session which refreshes its token."""
    refresh_on_401 = recipe("decorator_refresh")["refresh_on_401"]

    def session(tokens, answers=100):
        return chain(
            [tokens.answer] * answers, refresh_on_401("stale", tokens.fetch)
        ).build()

    return session


async def statuses(session, calls):
    responses = await asyncio.gather(
        *(session.get(URL) for _ in range(calls)), return_exceptions=True
    )
    return [getattr(each, "status", type(each)) for each in responses]


async def test_ten_calls_at_once_refresh_a_token_once(refreshing):
    """Calls that met the 401 meanwhile wait, and take the token that came."""
    tokens = Tokens()
    async with refreshing(tokens) as session:
        seen = await statuses(session, 10)
        later = await statuses(session, 1)

    assert [200] * 10 == seen
    assert [200] == later
    assert 1 == tokens.asked


async def test_token_that_is_refreshed_again_is_asked_for_again(refreshing):
    """One that expires later is no other case."""
    tokens = Tokens()
    async with refreshing(tokens) as session:
        await statuses(session, 10)
        tokens.asked += 1  # so that the token in use is valid no longer
        seen = await statuses(session, 10)

    assert [200] * 10 == seen
    assert 3 == tokens.asked


async def test_same_token_again_is_not_asked_for_by_each(refreshing, recipe):
    """A server that insists on 401 costs one refresh, not one of each call."""
    asked = []

    async def fetch():
        asked.append(1)
        await asyncio.sleep(1.0)
        return "stale"

    refresh_on_401 = recipe("decorator_refresh")["refresh_on_401"]
    async with session([401] * 20, refresh_on_401("stale", fetch)) as client:
        seen = await statuses(client, 10)

    assert [401] * 10 == seen
    assert 1 == len(asked)


async def test_refresh_that_fails_is_made_by_the_next_call(refreshing):
    """It fails the call that made it, and no other."""
    tokens = Tokens(aiohttp.ClientError("no"))
    async with refreshing(tokens) as session:
        seen = await statuses(session, 3)

    assert [aiohttp.ClientError, 200, 200] == seen
    assert 2 == tokens.asked


async def test_call_that_is_cancelled_leaves_the_refresh_to_the_others(refreshing):
    """Nobody waits for a refresh that was given up."""
    tokens = Tokens()
    async with refreshing(tokens) as session:
        first = asyncio.create_task(session.get(URL))
        others = [asyncio.create_task(session.get(URL)) for _ in range(3)]
        await asyncio.sleep(0.5)
        first.cancel()
        seen = [(await other).status for other in others]

    assert first.cancelled()
    assert [200] * 3 == seen
    assert 2 == tokens.asked


@pytest.fixture
def keyed(recipe):
    """A session whose POSTs have keys, and the headers that were sent."""
    transport = ScriptedTransport([503, 503, 200, 200, 200])
    builder = chain(transport)
    strategy = RetryStrategy.failsafe(Backoff.without_delay())
    builder.decorator(RetryingClient.new_decorator(strategy))
    builder.decorator(recipe("decorator_idempotency_key")["idempotency_key"])

    def keys():
        return [each.headers.get("Idempotency-Key") for each in transport.requests]

    return builder, keys


async def test_key_is_that_of_the_call(keyed):
    """The same on all attempts, which it makes possible, and another on the next."""
    builder, keys = keyed
    async with builder.build() as session:
        await session.post(URL)
        await session.post(URL)
    first, second, third, other = keys()

    assert first == second == third != other
    assert None is not other


async def test_key_of_the_caller_stays_and_others_get_none(keyed):
    """A caller may repeat a call of an earlier day; a GET needs no key."""
    builder, keys = keyed
    async with builder.build() as session:
        await session.post(URL, headers={"idempotency-key": "mine"})
        await session.get(URL)

    assert ["mine", "mine", "mine", None] == keys()
