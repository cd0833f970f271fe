"""The log of a call keeps the answer whose body its deadline has cut."""

from __future__ import annotations

import pytest
from chains import SAFELY, retrying
from hostile_answers import answer

from aioretry_smithy import (
    ResponseTimeoutError,
    SessionBuilder,
    capture_logs,
    client_decorator,
)

STALLED = [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nX-A: 1\r\n\r\nab", 60.0]
SILENT = [60.0]


@client_decorator
async def reading(delegate, ctx, request):
    """Read the body, as a decorator that looks into it."""
    response = await delegate.execute(ctx, request)
    await response.read()
    return response


@client_decorator
async def failing_otherwise(delegate, ctx, request):
    """Turn one timeout into another, as a user's decorator may."""
    try:
        return await delegate.execute(ctx, request)
    except ResponseTimeoutError as error:
        raise ResponseTimeoutError("later than it may be") from error


async def log_of_call(url, *decorators, seconds=0.3):
    builder = SessionBuilder(url).response_timeout(seconds)
    for each in decorators:
        builder.decorator(each)
    with capture_logs() as logs:
        async with builder.build() as session:
            with pytest.raises(ResponseTimeoutError):
                async with session.get("/") as response:
                    await response.read()
    return logs[0]


BUFFERING = retrying(SAFELY, buffer_response=True)
CHAINS = {
    "read by the caller": (retrying(SAFELY),),
    "nothing retries": (reading,),
    "another error": (reading, failing_otherwise),
    "buffered": (BUFFERING,),
    "buffered, and another error": (BUFFERING, failing_otherwise),
    "read inside": (reading, retrying(SAFELY)),
    "read outside": (retrying(SAFELY), reading),
}


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
async def test_root_keeps_its_last_answer(serve, chain):
    """Its status and its headers, beside what the deadline did to the body."""
    log = await log_of_call(await serve(STALLED), *chain)

    assert (200, "OK", "1") == (
        log.response_status,
        log.response_reason,
        log.response_headers["X-A"],
    )
    assert isinstance(log.response_cause, ResponseTimeoutError)
    assert log.duration < 0.25 < log.total_duration
    assert "->  200 OK, " in log.render()
    assert not log.is_success


async def test_answer_after_a_retry(serve):
    """It is that of the last attempt."""
    log = await log_of_call(await serve([answer("503 Busy")], STALLED), BUFFERING)

    assert [503, 200] == [child.response_status for child in log.children]
    assert (200, "deadline") == (log.response_status, str(log.stop_reason))


async def test_last_attempt_without_an_answer(serve):
    """The answer of an earlier one is not that of the call."""
    hasty = retrying(SAFELY, buffer_response=True, attempt_timeout=0.4)
    log = await log_of_call(await serve(STALLED, SILENT), hasty, seconds=1.0)

    assert [200, None] == [child.response_status for child in log.children[:2]]
    assert log.response_status is None
    assert log.response_headers is None
