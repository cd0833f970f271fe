"""What ``actual`` is told of bodies that come over a socket."""

import gc
import weakref

import aiohttp
import pytest
from chains import NOW, SAFELY, connected

from aioretry_smithy import (
    RateLimit,
    RateLimitingClient,
    RetryingClient,
    RetryStrategyWithContent,
)
from aioretry_smithy._limits.rate_rules import Charge

RATE = 1e-3
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n"
PARTS = [HEAD, b'{"usa', 0.05, b'ge": 7}']
BODY = b'{"usage": 7}'


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


def limited(limit, url, strategy, response_class=aiohttp.ClientResponse, **settings):
    limiting = RateLimitingClient.new_decorator([RateLimit(1000), limit])
    retrying = RetryingClient.new_decorator(strategy, **settings)
    return connected(url, limiting, retrying, response_class=response_class)


@pytest.mark.parametrize(
    ("strategy", "settings", "content"),
    [
        (SAFELY, {}, None),
        (SAFELY, {"buffer_response": True}, BODY),
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
            metered(asked), url, SAFELY, OwnResponse, buffer_response=True
        ) as client,
        client.get("/") as response,
    ):
        assert BODY == await response.read()

    assert [BODY] == asked


async def test_nothing_keeps_a_response_that_is_dropped(serve):
    """Neither the limit nor the call; its charge is forgotten with it."""
    asked = []
    limit = metered(asked)
    url = await serve(PARTS)
    async with limited(limit, url, SAFELY, buffer_response=True) as client:
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
