"""Code of users that is cut at the deadline, while something is on the wire."""

import asyncio
import time

import aiohttp
import pytest
from chains import SAFELY, connected, pass_on, retrying

from aioretry_smithy import (
    RequestLog,
    ResponseTimeoutError,
    capture_logs,
    client_decorator,
)

SILENT = [60.0]
GOOD = [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"]
LATE = aiohttp.ClientTimeout(total=0.3)


def limits_in(log):
    return [type(each.response_cause) for each in log.children]


async def test_request_that_is_under_way_names_the_limit_itself(serve):
    """It ends first, also where the loop was held up when both were due."""
    url = await serve(SILENT)
    with capture_logs() as logs:
        async with connected(
            url, pass_on, retrying(SAFELY), pass_on, timeout=LATE
        ) as session:
            loop = asyncio.get_running_loop()
            for held_up in (0.0, 0.2):
                loop.call_later(0.2, time.sleep, held_up)
                with pytest.raises(ResponseTimeoutError):
                    await session.get("")

    assert [[ResponseTimeoutError]] * 2 == [*map(limits_in, logs)]
    assert ["deadline"] * 2 == [str(log.stop_reason) for log in logs]


async def test_busy_machine_does_not_cut_what_comes_up_from_a_limit(serve):
    """Each turn of the loop may take long: other processes have the processor."""

    @client_decorator
    async def look_up(delegate, ctx, request):
        try:
            return await delegate.execute(ctx, request)
        except ResponseTimeoutError:
            for _ in range(10):
                asyncio.get_running_loop().call_soon(time.sleep, 0.003)
                await asyncio.sleep(0)
            raise LookupError("nothing kept") from None

    url = await serve(SILENT)
    async with connected(url, pass_on, look_up, timeout=LATE) as session:
        with pytest.raises(LookupError, match="nothing kept"):
            await session.get("")


@pytest.mark.slow
async def test_loop_whose_turns_are_all_long_cuts(serve):
    """Its timers are never on time, and the deadline is kept all the same."""

    async def keep_busy():
        while True:
            time.sleep(0.03)  # noqa: ASYNC251
            await asyncio.sleep(0)

    @client_decorator
    async def hang(delegate, ctx, request):
        await asyncio.sleep(60.0)

    url = await serve()
    async with connected(url, hang, timeout=aiohttp.ClientTimeout(total=0.1)) as client:
        busy = asyncio.create_task(keep_busy())
        try:
            async with asyncio.timeout(5.0):
                with pytest.raises(ResponseTimeoutError):
                    await client.get("")
        finally:
            busy.cancel()


async def test_answer_in_the_hands_of_what_is_cut_is_closed(serve):
    """No connection is left; the next call works."""
    seconds = iter([60.0, 0.0])

    @client_decorator
    async def look(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        await asyncio.sleep(next(seconds))
        return response

    url = await serve([GOOD[0][:-2], 60.0], GOOD)
    async with connected(url, look, retrying(SAFELY), pass_on) as session:
        with pytest.raises(ResponseTimeoutError) as caught:
            await session.get("", timeout=LATE)
        assert not session.connector._acquired
        async with session.get("") as response:
            assert b"good" == await response.read()

    assert "deadline" == str(RequestLog.of(caught.value).stop_reason)
    assert 0 == asyncio.current_task().cancelling()


async def test_many_calls_at_once_are_cut_each_by_itself(serve):
    """And a task that has several of them one after the other."""

    @client_decorator
    async def slow(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        await asyncio.sleep(ctx.request.options["trace_request_ctx"])
        return response

    url = await serve(GOOD)
    async with connected(url, slow, retrying(SAFELY), timeout=LATE) as session:

        async def call(seconds):
            try:
                async with session.get("", trace_request_ctx=seconds) as response:
                    return response.status
            except ResponseTimeoutError:
                return None

        results = await asyncio.gather(*map(call, [0.0, 60.0] * 20))
        again = [await call(seconds) for seconds in (60.0, 0.0)]

    assert [200, None] * 20 == results
    assert [None, 200] == again
