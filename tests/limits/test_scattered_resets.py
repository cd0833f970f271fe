"""Those that have waited for a reset go out one by one, not in the same moment."""

from __future__ import annotations

import asyncio
import random

import pytest
from chains import URL, Scripted, now

from aioretry_smithy import RateLimit, RateLimitError, RateLimitingClient


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
