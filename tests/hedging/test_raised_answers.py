"""What is raised for a status ends a race as an answer with that status does."""

from __future__ import annotations

import aiohttp
import pytest
from chains import URL, after, session
from races import hedging, sent
from raised import raised, raising

from aioretry_smithy import capture_logs


async def raced(answers):
    with capture_logs() as logs:
        async with session(answers, raising, hedging(0.5, max_hedges=2)) as client:
            try:
                response = await client.get(URL)
            except aiohttp.ClientResponseError as error:
                return error.status, logs[0]
            return response.status, logs[0]


async def test_good_one_wins():
    """A 404 is an answer: nobody waits for a slower one."""
    status, log = await raced([after(9.0, 200), after(0.25, 404)])

    assert (404, 0.75) == (status, log.duration)
    assert [True, False] == [each.superseded for each in log.children]
    assert [0, 0.5] == [began for began, _, _ in sent(log)]


@pytest.mark.parametrize("status", [429, 503])
async def test_bad_one_sends_the_next_hedge_at_once(status):
    """As the answer of a server that fails."""
    ended, log = await raced([after(0.25, status), after(0.25, 200)])

    assert (200, 0.5) == (ended, log.duration)


async def test_hint_sends_none():
    """A server that says when to come back is left alone until then."""
    headers = {"Retry-After": "1"}
    status, log = await raced([after(0.25, (503, headers, b"")), 200])

    assert (503, 1) == (status, log.total_attempts)


async def test_bad_ones_alone_end_with_one_of_them():
    """As failures do."""
    status, log = await raced([after(0.25, 503), after(0.25, 503), raised(429)])

    assert (503, 3) == (status, log.total_attempts)
