"""What ``actual`` is told of bodies that come over a socket."""

from __future__ import annotations

import asyncio
import gc
import weakref

import aiohttp
import pytest
from chains import NOW, connected

from aioretry_smithy import (
    RateLimit,
    RateLimitingClient,
    RetryingClient,
    RetryStrategy,
    RetryStrategyWithContent,
)
from aioretry_smithy._limits.rate_limit import Charge

RATE = 1e-3
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n"
PARTS = [HEAD, b'{"usa', 0.05, b'ge": 7}']
BODY = b'{"usage": 7}'
EVENTS = [b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", b"data: 1\n\n"]
FAILSAFE = RetryStrategy.failsafe(NOW)


class Looking(RetryStrategyWithContent):
    """Waits for the first bytes of each body."""

    def __init__(self, length):
        self.max_content_length = length

    def should_retry(self, ctx, cause, content):
        return NOW if cause is not None else None


def metered(asked):
    """Return a limit that notes what it is told of bodies."""

    def actual(log, content):
        asked.append(content)
        return None if content is None else len(content)

    return RateLimit(RATE, burst=100, cost=lambda ctx, request: 50, actual=actual)


def full_in(limit):
    """Return the time at which the limit has all of its tokens."""
    return limit._line.rule._full_at


def limited(limit, url, strategy, response_class=aiohttp.ClientResponse, **settings):
    limiting = RateLimitingClient.new_decorator([RateLimit(1000), limit])
    retrying = RetryingClient.new_decorator(strategy, **settings)
    return connected(url, limiting, retrying, response_class=response_class)


@pytest.mark.parametrize(
    ("strategy", "settings", "content"),
    [
        (FAILSAFE, {}, None),
        (FAILSAFE, {"buffer_response": True}, BODY),
        (Looking(1000), {}, BODY),
        # The rest has not come yet when it has seen enough.
        (Looking(3), {}, None),
        (Looking(3), {"buffer_response": True}, BODY),
    ],
    ids=["stream", "buffered", "looked at", "looked at the start", "both"],
)
async def test_the_content_is_there_where_the_body_was_read_whole(
    serve, strategy, settings, content
):
    """The caller gets all of it in any case."""
    asked = []
    url = await serve(PARTS)
    async with (
        limited(metered(asked), url, strategy, **settings) as client,
        client.get("/") as response,
    ):
        assert BODY == await response.read()

    assert [content] == asked


async def test_an_empty_body_is_content_too(serve):
    """All of them share one reader."""
    asked = []
    url = await serve([b"HTTP/1.1 204 No Content\r\n\r\n"])
    async with (
        limited(metered(asked), url, FAILSAFE, buffer_response=True) as client,
        client.get("/") as response,
    ):
        assert b"" == await response.read()

    assert [b""] == asked


class OwnResponse(aiohttp.ClientResponse):
    """A response class of the user's own, with a way to read bodies of its own."""

    async def read(self):
        return await super().read()


async def test_a_response_class_of_ones_own_has_content_too(serve):
    """What it has read it keeps."""
    asked = []
    url = await serve(PARTS)
    async with (
        limited(
            metered(asked), url, FAILSAFE, OwnResponse, buffer_response=True
        ) as client,
        client.get("/") as response,
    ):
        assert BODY == await response.read()

    assert [BODY] == asked


async def test_events_have_no_content(serve):
    """It is asked at the headers, while they go on; the caller may say more."""
    asked, seen = [], asyncio.Event()
    limit = metered(asked)
    url = await serve([*EVENTS, seen, b"data: 2\n\n", None])
    async with limited(limit, url, FAILSAFE) as client, client.get("/") as response:
        assert [None] == asked

        seen.set()
        events = [line async for line in response.content if line.strip()]
        before = full_in(limit)
        limit.settle(response, 4 * len(events))

    assert 42 == round((before - full_in(limit)) * RATE)
    assert [b"data: 1\n", b"data: 2\n"] == events


@pytest.mark.parametrize("settings", [{}, {"buffer_response": True}], ids=str)
async def test_a_body_that_breaks_has_no_figure(serve, settings):
    """A buffered one is a failed attempt; of a stream the headers have said all."""
    asked = []
    url = await serve([HEAD, b"{", None], PARTS)
    async with limited(metered(asked), url, FAILSAFE, **settings) as client:
        try:
            async with client.get("/") as response:
                await response.read()
        except aiohttp.ClientPayloadError:
            assert not settings

    assert [BODY if settings else None] == asked


async def test_nothing_keeps_a_response_that_is_dropped(serve):
    """Neither the limit nor the call; its charge is forgotten with it."""
    asked = []
    limit = metered(asked)
    url = await serve(PARTS)
    async with limited(limit, url, FAILSAFE, buffer_response=True) as client:
        response = await client.get("/")
        kept = weakref.ref(response)
        del response
        gc.collect()

        assert kept() is None
        assert [] == [
            each
            for each in gc.get_objects()
            if isinstance(each, Charge) and each._bucket is limit._line.rule
        ]
