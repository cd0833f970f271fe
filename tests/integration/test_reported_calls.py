"""Hints about connections and bodies, which only a real server has."""

import asyncio
import itertools

import aiohttp
import pytest
from aiohttp import web
from chains import retrying
from made_lines import keeping

from aioretry_smithy import RetryStrategy


@pytest.fixture
def kept(tmp_path):
    """The calls of a test, of which a report is made."""
    with keeping(tmp_path) as calls:
        yield calls


@pytest.fixture
async def url(aiohttp_server):
    """A server that takes its time."""
    asked = itertools.count()

    async def answer(request):
        head, body, hang = (
            float(request.query.get(key, 0)) for key in ("head", "body", "hang")
        )
        if hang and next(asked) % 2:
            body = hang
        await asyncio.sleep(head)
        response = web.StreamResponse(headers={"Content-Length": "4"})
        await response.prepare(request)
        await response.write(b"or")
        await asyncio.sleep(body)
        await response.write(b"se")
        return response

    app = web.Application()
    app.router.add_get("/", answer)
    return (await aiohttp_server(app)).make_url("/")


async def test_a_pool_that_is_too_small(kept, url):
    """Most requests waited for its one connection."""
    connector = aiohttp.TCPConnector(limit=1)
    await kept.make(
        None, url=url.with_query(head=0.02), calls=24, at_once=8, connector=connector
    )
    hint = kept.hints()["pool_too_small"]

    assert hint["figures"]["slowest_share"] > 0.5
    assert 17 <= hint["figures"]["queued"] <= 24
    assert "TCPConnector(limit=" in hint["setting"]


@pytest.mark.parametrize(("at_once", "patience"), [(1, None), (8, 0.05)])
async def test_a_pool_that_is_large_enough(kept, url, at_once, patience):
    """No request waits for it; or callers gave up those that did."""
    connector = aiohttp.TCPConnector(limit=1)
    seconds = 0.02 if patience is None else 0.2
    await kept.make(
        None, url=url.with_query(head=seconds), calls=24, at_once=at_once,
        patience=patience, connector=connector,
    )  # fmt: skip

    assert {} == kept.hints()


@pytest.mark.slow
async def test_bodies_that_came_just_in_time(kept, url):
    """The timeout of an attempt covers them, too."""
    chain = retrying(RetryStrategy.never(), attempt_timeout=2.5)
    # In the last fifth of the time, with as much left as a busy machine may take.
    url = url.with_query(body=2.05, hang=9.0)
    await kept.make(None, chain, url=url, calls=10, at_once=10)
    (hint,) = kept.hints().values()

    assert "attempt_timeout_too_short" == hint["hint"]
    assert 5 == hint["figures"]["timeouts"] == hint["figures"]["near"]
