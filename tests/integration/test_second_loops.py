"""Limits of a module that serve one event loop after the other.

The first one is closed while requests are in flight, and while others wait.
"""

import asyncio
import gc
import importlib
import os
import weakref

import pytest
from chains import URL, chain, connected

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
    HedgingClient,
    RateLimit,
    RateLimitingClient,
    RefreshingClient,
)

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
PATIENCE = 10.0
SOON = 0.2


def new_loop():
    name = os.environ.get("AIORETRY_SMITHY_TEST_LOOP", "asyncio")
    return importlib.import_module(name).new_event_loop()


def abandoned(main, *arguments):
    """Run a coroutine function in a loop that is closed with all that it has left."""
    loop = new_loop()
    left = loop.run_until_complete(main(*arguments))
    loop.close()
    return left


def run(main, *arguments):
    """Run a coroutine function as ``asyncio.run()`` does, though not for ever."""

    async def in_time():
        async with asyncio.timeout(PATIENCE):
            return await main(*arguments)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(in_time())


@pytest.fixture(autouse=True)
def _collected():
    """Let what the loops have left end with the test."""
    yield
    gc.collect()


async def hang(ctx, request):
    await asyncio.Event().wait()


async def leave_calls(*decorators, many=3, answers=None):
    """Leave calls under way: some in flight, some in line."""
    session = chain(answers or [hang] * many, *decorators).build()
    tasks = [asyncio.create_task(session.get(URL)) for _ in range(many)]
    await asyncio.sleep(SOON / 4)
    return session, tasks


async def status(*decorators, answers=(200,)):
    async with (
        chain(answers, *decorators).build() as session,
        session.get(URL) as response,
    ):
        return response.status


LIMITS = {
    "fixed": lambda: ConcurrencyLimit.fixed(1),
    "function": lambda: ConcurrencyLimit.fixed(lambda: 1),
    "aimd": lambda: ConcurrencyLimit.aimd(initial=1, maximum=1),
}


@pytest.fixture(params=LIMITS.values(), ids=LIMITS)
def limit(request):
    return request.param()


def test_places_of_a_closed_loop_are_free(limit):
    """And those that waited there are in nobody's way."""
    limiting = ConcurrencyLimitingClient.new_decorator(limit, max_pending=2)
    left = abandoned(leave_calls, limiting)

    assert (0, 0) == (limit.in_flight, limit.pending)
    assert 200 == run(status, limiting)
    assert (0, 0) == (limit.in_flight, limit.pending)
    assert 2 == len(left)


def test_what_a_closed_loop_has_left_frees_no_place_when_it_goes(limit):
    """Otherwise the limit would be exceeded."""
    limiting = ConcurrencyLimitingClient.new_decorator(limit, timeout=SOON)
    left = [abandoned(leave_calls, limiting)]

    async def main():
        async with chain([hang, 200], limiting).build() as session:
            first = asyncio.create_task(session.get(URL))
            await asyncio.sleep(SOON / 4)
            left.clear()
            gc.collect()
            held = limit.in_flight
            with pytest.raises(ConcurrencyLimitError):
                await session.get(URL)
            first.cancel()
            await asyncio.wait([first])
        return held

    assert 1 == run(main)


def test_a_queue_is_as_long_as_it_was(limit):
    """Those that waited in the closed loop are not in it."""
    limiting = ConcurrencyLimitingClient.new_decorator(limit, max_pending=1)
    left = abandoned(leave_calls, limiting)

    async def main():
        started = asyncio.Event()

        async def answer(ctx, request):
            await started.wait()
            return 200

        async with chain([answer, 200], limiting).build() as session:
            tasks = [asyncio.create_task(session.get(URL)) for _ in range(2)]
            await asyncio.sleep(SOON / 4)
            with pytest.raises(ConcurrencyLimitError):
                await session.get(URL)
            started.set()
            return [(await task).status for task in tasks]

    assert [200, 200] == run(main)
    assert left


# aiohttp closes the connection of such a response when it goes: in the closed loop.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_responses_that_a_loop_has_left_open_hold_no_place(limit):
    """Though a variable still has one of them."""
    limiting = ConcurrencyLimitingClient.new_decorator(limit)

    async def main():
        async def answer(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD + b"ord")
            await writer.drain()
            await asyncio.Event().wait()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        session = connected(f"http://127.0.0.1:{port}/", limiting)
        return session, await session.get("/"), server

    left = abandoned(main)

    assert 200 == run(status, limiting)
    assert 0 == limit.in_flight
    assert left


RATES = {
    "rate": lambda: [RateLimit(1, per=SOON)],
    "several": lambda: [RateLimit(1, per=SOON), RateLimit(5, per=SOON)],
    "cost": lambda: [RateLimit(1, per=SOON, cost=lambda ctx, request: 1)],
}


@pytest.fixture(params=RATES.values(), ids=RATES)
def rates(request):
    return request.param()


def test_turns_of_a_closed_loop_are_not_waited_for(rates):
    """The first call goes out when there is a token."""
    limiting = RateLimitingClient.new_decorator(rates)
    left = abandoned(leave_calls, limiting)

    assert [0] * len(rates) == [rate.pending for rate in rates]
    assert 200 == run(status, limiting)
    assert [0] * len(rates) == [rate.pending for rate in rates]
    assert left


@pytest.mark.slow
def test_tokens_that_come_back_wake_nobody_of_a_closed_loop():
    """What an answer has cost is corrected in the loop of that answer."""
    costs = iter([2, 2, 2, 1])
    limit = RateLimit(
        2,
        per=PATIENCE / 4,
        cost=lambda ctx, request: next(costs),
        actual=lambda log, content: 0,
    )
    limiting = RateLimitingClient.new_decorator(limit)
    left = abandoned(leave_calls, limiting)

    assert 200 == run(status, limiting)
    assert 0 == limit.pending
    assert left


@pytest.mark.slow
def test_server_that_named_a_reset_is_asked_after_another_loop():
    """When the reset has come."""
    limit = RateLimit.from_headers()
    limiting = RateLimitingClient.new_decorator(limit)
    soon = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}

    async def main():
        assert 200 == await status(limiting, answers=[(200, soon, b"")])
        return await leave_calls(limiting, many=2)

    left = abandoned(main)

    assert 200 == run(status, limiting)
    assert 0 == limit.pending
    assert left


@pytest.mark.slow
@pytest.mark.parametrize("cost", [None, lambda ctx, request: 1], ids=["rate", "cost"])
def test_turns_at_a_shared_rate_are_those_of_one_loop(cost):
    """The one that asked for a turn there keeps nobody from asking here."""
    pytest.importorskip("limits.aio", reason="needs the extra limits")
    from aioretry_smithy.limits import SharedRateLimit  # noqa: PLC0415

    limit = SharedRateLimit("async+memory://", "1/second", key="orders", cost=cost)
    limiting = RateLimitingClient.new_decorator(limit)
    left = abandoned(leave_calls, limiting)

    assert 0 == limit.pending
    assert 200 == run(status, limiting)
    assert 0 == limit.pending
    assert left


def test_places_of_a_loop_that_is_open_are_held(limit):
    """It may go on after the other one."""
    limiting = ConcurrencyLimitingClient.new_decorator(limit, timeout=0.0)
    loop = new_loop()
    left = loop.run_until_complete(leave_calls(limiting, many=1))
    with pytest.raises(ConcurrencyLimitError):
        run(status, limiting)
    loop.close()

    assert 200 == run(status, limiting)
    assert left


@pytest.mark.slow
def test_those_in_line_behind_a_loop_that_is_closed_go_on(rates):
    """When the next one comes."""
    limiting = RateLimitingClient.new_decorator(rates)
    loop = new_loop()
    left = loop.run_until_complete(leave_calls(limiting))

    async def main():
        async with chain([200] * 2, limiting).build() as session:
            first = asyncio.create_task(session.get(URL))
            await asyncio.sleep(SOON / 4)
            loop.close()
            second = await session.get(URL)
            return (await first).status, second.status

    assert (200, 200) == run(main)
    assert left


def tokens():
    fetches = iter([asyncio.Event, None])

    async def fetch():
        event = next(fetches)
        if event is not None:
            await event().wait()
        return "a token"

    return RefreshingClient.new_decorator(fetch, hosts=["http://localhost"])


def hedges():
    return HedgingClient.new_decorator(SOON / 20)


@pytest.mark.parametrize("make", [tokens, hedges])
def test_what_a_closed_loop_has_left_goes(make):
    """When the next loop begins, at the latest: calls, tasks, and the loop itself."""
    decorator = make()
    session, tasks = abandoned(leave_calls, decorator)
    loop = weakref.ref(tasks[0].get_loop())
    del session, tasks

    assert 200 == run(status, decorator)
    gc.collect()
    assert loop() is None


def test_token_stays_in_a_loop_that_is_open():
    """Another loop begins a fetch of its own meanwhile."""
    fetched = []

    async def fetch():
        fetched.append(asyncio.get_running_loop())
        return "a token"

    decorator = RefreshingClient.new_decorator(fetch, hosts=["http://localhost"])
    with asyncio.Runner(loop_factory=new_loop) as runner:
        first = runner.get_loop()
        assert 200 == runner.run(status(decorator))
        assert 200 == run(status, decorator)
        assert 200 == runner.run(status(decorator))

    assert first is fetched[0]
    assert 2 == len(fetched)
