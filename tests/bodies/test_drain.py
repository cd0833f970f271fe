"""Responses that are given up: the rest of a body is read, or the connection closed."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from fake_responses import FakeResponse, FakeStream

from aioretry_smithy import HttpRequest, new_response
from aioretry_smithy._bodies.response_content import discard

REQUEST = HttpRequest("GET", "http://example.com/a?b=1", headers={"A": "1"})


async def test_released_twice():
    """Giving up and closing in any order raises nothing."""
    response = new_response(REQUEST, body=b"abc")
    await discard(response)
    await discard(response)
    response.release()
    response.close()


@pytest.mark.parametrize(
    ("response", "reused"),
    [
        (FakeResponse(FakeStream(0)), True),
        (FakeResponse(FakeStream(64, 1024)), True),
        (FakeResponse(FakeStream(64, 1024), length=65_536), True),
        (FakeResponse(FakeStream(66, 1024)), False),
        (FakeResponse(FakeStream(1, 1), length=65_537), False),
        (FakeResponse(FakeStream(9, 1, interval=0.01)), True),
        (FakeResponse(FakeStream(11, 1, interval=0.01)), False),
        (FakeResponse(FakeStream(1, 1, interval=3600.0)), False),
        (FakeResponse(FakeStream(1, error=aiohttp.ClientPayloadError())), False),
        (FakeResponse(FakeStream(1, error=ConnectionResetError())), False),
        (FakeResponse(FakeStream(1, 1), status=101), False),
    ],
    ids=[
        "at its end",
        "small",
        "small, declared",
        "large",
        "large, declared",
        "slow",
        "too slow",
        "silent",
        "broken",
        "reset",
        "another protocol",
    ],
)
async def test_rest_of_a_body_is_read_if_it_is_worth_it(response, reused):
    """At most 64 KiB and 0.1 s are spent on keeping a connection."""
    await discard(response)

    assert (["release", "close"] if reused else ["close"]) == response.calls
    assert asyncio.get_running_loop().time() <= 0.1


async def test_cancellation_while_giving_up_closes():
    """A caller cancelled while reading the rest leaves no connection behind."""
    response = FakeResponse(FakeStream(1, interval=0.05))
    task = asyncio.create_task(discard(response))
    await asyncio.sleep(0.01)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ["close"] == response.calls
