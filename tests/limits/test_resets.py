"""Waits for a reset: what is cut, who finds out more, and in which order all go."""

import asyncio
import math
import random

import aiohttp
import pytest
from chains import URL, Scripted, drawing, now
from fake_responses import sent_to

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
from aioretry_smithy._limits.rate_rules import Scatter

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
def server(monkeypatch, draw):
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
async def test_no_answer_closes_a_limit_for_good(server, headers):
    """After a minute one request goes out, and the others once it is answered."""
    server.answers = [(0.0, headers), (2.0, {})]
    async with build() as client:
        await end_of(client)
        ends = await ends_of(client, 4)

    assert [0.0, 60.0, 62.0, 62.0, 62.0] == server.asked
    assert [(62.0, 200)] * 4 == ends


async def test_what_the_one_request_learns_holds_for_all(server):
    """A reset, or another wait that is cut."""
    server.answers = [(0.0, HUGE), (1.0, HUGE), (1.0, {"Retry-After": "7"})]
    async with build() as client:
        await end_of(client)
        await ends_of(client, 4)

    assert [0.0, 60.0, 121.0, 129.0, 129.0] == server.asked


async def test_a_request_that_comes_later_is_the_one(server):
    """Those that come while it is under way wait for its answer."""
    server.answers = [(0.0, HUGE), (5.0, {})]
    async with build() as client:
        await end_of(client)
        await asyncio.sleep(100.0)
        first = asyncio.create_task(end_of(client))
        await asyncio.sleep(1.0)
        second = await end_of(client)

        assert [(105.0, 200), (105.0, 200)] == [await first, second]
        await end_of(client)

    assert [0.0, 100.0, 105.0, 105.0] == server.asked


async def test_after_a_failure_the_next_one_finds_out(server):
    """One at a time, until one of them is answered."""
    lost = aiohttp.ServerDisconnectedError()
    server.answers = [(0.0, HUGE), (1.0, lost), (2.0, lost), (3.0, {})]
    async with build() as client:
        await end_of(client)
        ends = await ends_of(client, 4)

    assert [0.0, 60.0, 61.0, 63.0, 66.0] == server.asked
    assert [(61.0, aiohttp.ServerDisconnectedError)] == ends[:1]
    assert [(66.0, 200)] * 2 == ends[2:]


async def test_after_a_cancellation_the_next_one_finds_out(server):
    """Whether the request was sent, or was about to go out."""
    server.answers = [(0.0, HUGE), (9.0, {}), (1.0, {})]
    async with build() as client:
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


async def test_a_late_one_keeps_the_others_no_longer_than_the_longest_wait(server):
    """Then the next one goes out; the first answer of them counts."""
    server.answers = [(0.0, HUGE), (100.0, {}), (70.0, {})]
    async with build() as client:
        await end_of(client)
        ends = await ends_of(client, 3)

    assert [0.0, 60.0, 120.0, 160.0] == server.asked
    assert [(160.0, 200), (190.0, 200), (160.0, 200)] == ends


@pytest.mark.parametrize("late", [{}, aiohttp.ServerDisconnectedError()], ids=repr)
async def test_a_late_end_does_not_undo_a_later_answer(server, late):
    """The server has said more since."""
    server.answers = [(0.0, HUGE), (90.0, late), (1.0, {"Retry-After": "50"})]
    async with build() as client:
        await end_of(client)
        await ends_of(client, 3)

    assert [0.0, 60.0, 120.0, 171.0] == server.asked


async def test_an_older_request_may_name_a_reset_meanwhile(server):
    """It is kept though the one that finds out fails."""
    lost = aiohttp.ServerDisconnectedError()
    server.answers = [(0.5, HUGE), (62.0, {"Retry-After": "9"}), (5.0, lost)]
    async with build() as client:
        older = [asyncio.create_task(end_of(client)) for _ in range(2)]
        await asyncio.sleep(1.0)
        await ends_of(client, 3)
        await asyncio.gather(*older)

    assert [0.0, 0.0, 60.5, 71.0, 71.0] == server.asked


async def test_a_request_in_line_waits_no_longer_than_it_may(server):
    """It is refused at once only where its turn is known to come too late."""
    server.answers = [(0.0, HUGE), (9.0, {})]
    async with build(timeout=5.0) as client:
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


@pytest.fixture(autouse=True)
def _seeded(monkeypatch):
    monkeypatch.setattr(random, "random", random.Random(7).random)


def limited(answers, *beside, **settings):
    """A session that learns from its answers, and notes who was sent when."""
    sent = []

    def noting(answer):
        def respond(ctx, request):
            sent.append((request.url.query_string, now()))
            return answer

        return respond

    limit = RateLimit.from_headers()
    decorator = RateLimitingClient.new_decorator([limit, *beside], **settings)
    return Scripted([noting(each) for each in answers], decorator), sent


def closed(seconds, status=429):
    return status, {"Retry-After": str(seconds)}, b""


async def crowd(scripted, many):
    """Make a call that closes the limit, and then others; return their statuses."""
    await scripted.get(URL)
    calls = [
        asyncio.create_task(scripted.get(f"{URL}?{number}")) for number in range(many)
    ]
    return await asyncio.gather(*calls)


@pytest.mark.parametrize("status", [429, 403])
@pytest.mark.parametrize(("wait", "window"), [(2, 0.4), (5, 1.0), (50, 1.0)])
async def test_they_go_out_within_a_fifth_of_the_wait(status, wait, window):
    """At most a second; none before the reset, all in their order."""
    scripted, sent = limited([closed(wait, status), *[200] * 30])
    async with scripted:
        assert [200] * 30 == await crowd(scripted, 30)

    numbers, times = zip(*sent[1:], strict=True)
    assert [str(number) for number in range(30)] == [*numbers]
    assert wait <= times[0]
    assert times[-1] <= wait + window
    # As thirty numbers by chance, and in no groups.
    assert window / 2 < times[-1] - times[0]
    assert 30 == len(set(times))


async def test_they_go_out_after_an_answer_that_says_all_is_well():
    """Those that waited for the one request that found out are scattered too."""
    scripted, sent = limited([closed(3600), *[200] * 30])
    async with scripted:
        await crowd(scripted, 30)

    _, (_, probe), *others = sent
    assert 60.0 <= probe <= 61.0
    times = [at for _, at in others]
    assert probe <= min(times)
    assert 0.5 < max(times) - min(times)
    assert max(times) <= probe + 1.0


async def test_who_comes_when_nobody_waits_goes_out_at_once():
    """Only those that have waited are many."""
    scripted, sent = limited([closed(5), 200, 200])
    async with scripted:
        await crowd(scripted, 1)
        before = now()
        await scripted.get(URL)

    assert before == sent[-1][1]
    assert 5.0 < before < 6.0


async def test_who_comes_while_others_wait_goes_out_behind_them():
    """First come, first served."""
    scripted, sent = limited([closed(5), *[200] * 4])
    async with scripted:
        others = asyncio.create_task(crowd(scripted, 3))
        await asyncio.sleep(5.001)
        await scripted.get(f"{URL}?late")
        await others

    assert ["0", "1", "2", "late"] == [number for number, _ in sent[1:]]
    assert sent[-1][1] <= 6.0


@pytest.mark.parametrize("rates", [(), (1000,)])
@pytest.mark.parametrize("left", [0.01, 0.5])
async def test_nobody_is_refused_because_of_it(rates, left):
    """Who would give up meanwhile goes out before that, and has time left."""
    beside = [RateLimit(each) for each in rates]
    scripted, sent = limited([closed(5), *[200] * 20], *beside, timeout=5.0 + left)
    async with scripted:
        assert [200] * 20 == await crowd(scripted, 20)

    times = [at for _, at in sent[1:]]
    assert 5.0 <= times[0]
    assert times[-1] < 5.0 + left
    assert 20 == len(set(times))


async def test_who_gave_up_hurries_nobody():
    """The others have the whole window."""
    scripted, sent = limited([closed(5), *[200] * 9], timeout=None)
    async with scripted:
        await scripted.get(URL)
        impatient = asyncio.create_task(scripted.get(f"{URL}?impatient"))
        calls = asyncio.gather(*(scripted.get(f"{URL}?{each}") for each in range(9)))
        await asyncio.sleep(1.0)
        impatient.cancel()
        await asyncio.wait([impatient])
        await calls

    assert "impatient" not in [number for number, _ in sent]
    assert 0.5 < sent[-1][1] - sent[1][1]


async def test_a_later_reset_begins_anew():
    """An answer that is under way may name one while others go out."""
    scripted, sent = limited([closed(5), 200, closed(5), *[200] * 9])
    async with scripted:
        await crowd(scripted, 6)

    times = [at for _, at in sent[1:]]
    assert 5.0 < times[0] < times[1] < 6.0
    assert times[1] + 5.0 <= times[2]
    assert times[-1] <= times[1] + 6.0


async def test_a_turn_that_comes_too_late_for_sure_is_refused_at_once():
    """By the reset, and not by what chance may add to it."""
    scripted, _ = limited([closed(5), 200], timeout=4.9)
    async with scripted:
        await scripted.get(URL)
        with pytest.raises(RateLimitError) as caught:
            await scripted.session.get(URL)

    assert (0.0, 5.0) == (now(), caught.value.retry_in)


def turns_after(*resets):
    """Return when three that are patient go out, one after the other."""
    scatter = Scatter()
    for at in resets:
        scatter.begin(at, 5.0)
    turns = []
    with drawing(0.5):
        for waiting in (3, 2, 1):
            turns.append(scatter.next_turn(10.0, waiting, 60.0))
            scatter.let_go()
    return turns


def test_an_earlier_reset_begins_no_window():
    """The answers of two requests may come in another order than they were sent."""
    assert turns_after(10.0) == turns_after(10.0, 9.0)
