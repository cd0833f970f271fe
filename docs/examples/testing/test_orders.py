import asyncio

import aiohttp
import pytest
from orders import count_orders, with_our_chain

from aioretry_smithy import (
    ClientRequestContext,
    HttpRequest,
    RequestLog,
    SessionBuilder,
    capture_logs,
)
from aioretry_smithy.testing import ScriptedTransport


def session_that_meets(*answers: object) -> aiohttp.ClientSession:
    transport = ScriptedTransport(answers)
    builder = SessionBuilder("https://api.example.com").decorator(transport)
    return with_our_chain(builder).build()


async def test_conflicts_are_waited_out() -> None:
    async with session_that_meets(409, 409, [1, 2]) as session:
        with capture_logs() as logs:
            assert await count_orders(session) == 2

    assert [attempt.delay for attempt in logs[0].children] == [1.0, 2.0, None]
    assert logs[0].duration == 3.0  # virtual seconds: no real time has passed


async def test_silence_ends_the_call() -> None:
    async def silence(ctx: ClientRequestContext, request: HttpRequest) -> None:
        await asyncio.sleep(3600)

    async with session_that_meets(silence) as session:
        with pytest.raises(TimeoutError) as caught:
            await count_orders(session)

    assert RequestLog.of(caught.value).duration == 5.0
