"""Waits for a reset that are cut, and the one request that finds out more."""

from __future__ import annotations

import asyncio
import math

import aiohttp
import pytest
from chains import URL, now
from wire import sent_to

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    FailFastError,
    HttpRequest,
    RateLimit,
    RateLimitError,
    RateLimitingClient,
    SessionBuilder,
    new_response,
)

pytestmark = pytest.mark.usefixtures("draw")

HUGE = {"Retry-After": "99999999999"}
LEFT, RESET = "X-RateLimit-Remaining", "X-RateLimit-Reset"


class Server:
    """Answers in place of aiohttp: after how long, what, or with which failure."""

    def __init__(self):
        self.answers = []
        self.asked = []

    async def __call__(self, session, method, url, **options):
        self.asked.append(now())
        seconds, answer = self.answers.pop(0) if self.answers else (0.0, {})
        await asyncio.sleep(seconds)
        if isinstance(answer, Exception):
            raise answer
        status = 429 if "Retry-After" in answer else 200
        return new_response(HttpRequest(method, url), status, headers=answer)


@pytest.fixture
def server(monkeypatch):
    return sent_to(Server(), monkeypatch)


def build(*decorators, max_wait=60.0, timeout=None):
    limit = RateLimit.from_headers(max_wait=max_wait)
    builder = SessionBuilder()
    limiting = RateLimitingClient.new_decorator(limit, timeout=timeout)
    for decorator in (limiting, *decorators):
        builder.decorator(decorator)
    return builder.build()


async def end_of(client):
    """Make a call; return its end and what it brought."""
    try:
        async with client.get(URL) as response:
            return now(), response.status
    except Exception as error:
        return now(), type(error)


async def ends_of(client, many):
    return await asyncio.gather(*(end_of(client) for _ in range(many)))


@pytest.mark.parametrize(
    "headers",
    [
        HUGE,
        {"Retry-After": "9" * 400},
        {"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"},
        {"RateLimit": '"a";r=0;t=999999999999'},
        {"RateLimit": '"a";r=0', "RateLimit-Policy": '"a";q=9;w=999999999999'},
        {LEFT: "0", RESET: "999999999999"},
        {LEFT: "0", RESET: "999999999"},
        {LEFT: "0", RESET: "60.000001"},
    ],
    ids=str,
)
async def test_no_answer_closes_a_limit_for_good(server, beside, headers):
    """After a minute one request goes out, and the others once it is answered."""
    server.answers = [(0.0, headers), (2.0, {})]
    async with build(*beside) as client:
        await end_of(client)
        ends = await ends_of(client, 4)

    assert [0.0, 60.0, 62.0, 62.0, 62.0] == server.asked
    assert [(62.0, 200)] * 4 == ends


async def test_after_a_reset_that_came_all_go_out(server, beside):
    """The server has said so."""
    server.answers = [(0.0, {"Retry-After": "60"}), (2.0, {})]
    async with build(*beside) as client:
        await end_of(client)
        await ends_of(client, 3)

    assert [0.0, 60.0, 60.0, 60.0] == server.asked


async def test_what_the_one_request_learns_holds_for_all(server, beside):
    """A reset, or another wait that is cut."""
    server.answers = [(0.0, HUGE), (1.0, HUGE), (1.0, {"Retry-After": "7"})]
    async with build(*beside) as client:
        await end_of(client)
        await ends_of(client, 4)

    assert [0.0, 60.0, 121.0, 129.0, 129.0] == server.asked


async def test_a_request_that_comes_later_is_the_one(server, beside):
    """Those that come while it is under way wait for its answer."""
    server.answers = [(0.0, HUGE), (5.0, {})]
    async with build(*beside) as client:
        await end_of(client)
        await asyncio.sleep(100.0)
        first = asyncio.create_task(end_of(client))
        await asyncio.sleep(1.0)
        second = await end_of(client)

        assert [(105.0, 200), (105.0, 200)] == [await first, second]
        await end_of(client)

    assert [0.0, 100.0, 105.0, 105.0] == server.asked


async def test_after_a_failure_the_next_one_finds_out(server, beside):
    """One at a time, until one of them is answered."""
    lost = aiohttp.ServerDisconnectedError()
    server.answers = [(0.0, HUGE), (1.0, lost), (2.0, lost), (3.0, {})]
    async with build(*beside) as client:
        await end_of(client)
        ends = await ends_of(client, 4)

    assert [0.0, 60.0, 61.0, 63.0, 66.0] == server.asked
    assert [(61.0, aiohttp.ServerDisconnectedError)] == ends[:1]
    assert [(66.0, 200)] * 2 == ends[2:]


async def test_after_a_cancellation_the_next_one_finds_out(server, beside):
    """Whether the request was sent, or was about to go out."""
    server.answers = [(0.0, HUGE), (9.0, {}), (1.0, {})]
    async with build(*beside) as client:
        await end_of(client)
        calls = [asyncio.create_task(end_of(client)) for _ in range(4)]
        await asyncio.sleep(1.0)
        loop = asyncio.get_running_loop()
        loop.call_at(61.0, calls[0].cancel)
        # Its turn and its cancellation come at the same time.
        loop.call_at(61.0, calls[1].cancel)
        await asyncio.wait(calls)

    assert [True, True] == [call.cancelled() for call in calls[:2]]
    assert [(62.0, 200)] * 2 == [call.result() for call in calls[2:]]
    assert [0.0, 60.0, 61.0, 62.0] == server.asked


async def test_a_late_one_keeps_the_others_no_longer_than_the_longest_wait(
    server, beside
):
    """Then the next one goes out; the first answer of them counts."""
    server.answers = [(0.0, HUGE), (100.0, {}), (70.0, {})]
    async with build(*beside) as client:
        await end_of(client)
        ends = await ends_of(client, 3)

    assert [0.0, 60.0, 120.0, 160.0] == server.asked
    assert [(160.0, 200), (190.0, 200), (160.0, 200)] == ends


@pytest.mark.parametrize("late", [{}, aiohttp.ServerDisconnectedError()], ids=repr)
async def test_a_late_end_does_not_undo_a_later_answer(server, beside, late):
    """The server has said more since."""
    server.answers = [(0.0, HUGE), (90.0, late), (1.0, {"Retry-After": "50"})]
    async with build(*beside) as client:
        await end_of(client)
        await ends_of(client, 3)

    assert [0.0, 60.0, 120.0, 171.0] == server.asked


async def test_an_older_request_may_name_a_reset_meanwhile(server, beside):
    """It is kept though the one that finds out fails."""
    lost = aiohttp.ServerDisconnectedError()
    server.answers = [(0.5, HUGE), (62.0, {"Retry-After": "9"}), (5.0, lost)]
    async with build(*beside) as client:
        older = [asyncio.create_task(end_of(client)) for _ in range(2)]
        await asyncio.sleep(1.0)
        await ends_of(client, 3)
        await asyncio.gather(*older)

    assert [0.0, 0.0, 60.5, 71.0, 71.0] == server.asked


async def test_a_request_in_line_waits_no_longer_than_it_may(server, beside):
    """It is refused at once only where its turn is known to come too late."""
    server.answers = [(0.0, HUGE), (9.0, {})]
    async with build(*beside, timeout=5.0) as client:
        await end_of(client)

        assert (0.0, RateLimitError) == await end_of(client)

        await asyncio.sleep(60.0)
        first = asyncio.create_task(end_of(client))
        await asyncio.sleep(0.0)
        with pytest.raises(RateLimitError) as caught:
            await client.get(URL)

        assert (65.0, 0.0) == (now(), caught.value.retry_in)
        await asyncio.sleep(0.0)
        patient = asyncio.create_task(end_of(client))

        assert [(69.0, 200), (69.0, 200)] == await asyncio.gather(first, patient)


async def test_a_refusal_further_out_leaves_the_turn_to_the_next(server):
    """The circuit is open; once it is closed the next request finds out."""
    server.answers = [(0.0, HUGE)]
    breaker = CircuitBreaker()
    breaking = CircuitBreakerClient.new_decorator(breaker)
    async with build(breaking) as client:
        for at, after_it in (0.0, (0.0, 429)), (60.0, (60.0, 200)):
            await asyncio.sleep(at)
            breaker.enter_state(CircuitState.FORCED_OPEN)

            assert (at, FailFastError) == await end_of(client)

            breaker.enter_state(CircuitState.CLOSED)

            assert after_it == await end_of(client)


@pytest.mark.parametrize("max_wait", [0, -1.0, math.inf, math.nan, True, "60", None])
def test_a_longest_wait_that_is_none_is_refused(max_wait):
    """Where the limit is made."""
    with pytest.raises(ValueError, match=r"^max_wait: .* \(expected: finite and > 0\)"):
        RateLimit.from_headers(max_wait=max_wait)


def test_a_limit_shows_its_longest_wait():
    """Where it is not the usual one."""
    assert "RateLimit.from_headers()" == repr(RateLimit.from_headers(max_wait=60.0))
    assert "RateLimit.from_headers(max_wait=5.0)" == repr(
        RateLimit.from_headers(max_wait=5.0)
    )
