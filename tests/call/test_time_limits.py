"""The time limits that aiohttp is called with, for a call and for its attempts."""

import asyncio

import pytest
from aiohttp import ClientTimeout
from chains import retrying
from fake_responses import changing, exact, get, pausing

from aioretry_smithy import (
    AttemptTimeoutError,
    RequestLog,
    ResponseTimeoutError,
    ResponseTimeoutMode,
    capture_logs,
    client_decorator,
)


async def test_session_has_the_deadline(wire):
    """The second attempt gets what the first one and the wait have left over."""
    wire.takes, wire.answers = 2.0, [503, 503, 200]
    await get(retrying(1.0), session_timeout=ClientTimeout(total=10.0))

    assert [0.0, 3.0, 6.0] == [call.at for call in wire.calls]
    assert [None, exact(7.0), exact(4.0)] == wire.timeouts


@pytest.mark.parametrize("limit", [10, ClientTimeout(total=10)])
async def test_request_has_the_deadline(wire, limit):
    """A request's own limit replaces the session's, larger or smaller."""
    wire.answers = [503]
    await get(retrying(1.0), session_timeout=ClientTimeout(total=5.0), timeout=limit)

    assert [limit, exact(9.0)] == wire.timeouts


async def test_other_limits_of_the_request_survive(wire):
    """The caller's limits for sockets hold for every attempt."""
    limits = {"connect": 1.0, "sock_read": 2.0, "sock_connect": 3.0}
    wire.answers = [503]
    await get(retrying(1.0), timeout=ClientTimeout(total=10.0, **limits))

    assert exact(9.0, **limits) == wire.timeouts[1]


@pytest.mark.parametrize(
    "given", [None, 0, -1, ClientTimeout(total=0), ClientTimeout(total=-1)], ids=str
)
async def test_no_limit_is_no_limit(wire, given):
    """None and, as in aiohttp, zero lift the session's limit for all attempts."""
    contexts = []
    look = changing(lambda ctx, request: contexts.append(ctx))
    wire.answers, wire.takes = [503, 503], 500.0
    session_timeout = ClientTimeout(total=10.0)
    await get(look, retrying(1.0), session_timeout=session_timeout, timeout=given)

    assert [given] * 3 == wire.timeouts
    assert [None] * 3 == [ctx.deadline for ctx in contexts]


@pytest.mark.parametrize("total", [None, 0, -5.0])
async def test_session_without_a_limit(wire, total):
    """A call is not limited where its session has no limit."""
    wire.answers = [503]
    await get(retrying(1.0), session_timeout=ClientTimeout(total=total))

    assert [{}, {"headers": {"armeria-retry-count": "1"}}] == wire.options


@pytest.mark.parametrize(
    ("gone", "injected"), [(0.0, None), (0.01, None), (0.0101, exact(9.9899))]
)
async def test_ten_milliseconds_do_not_count(wire, gone, injected):
    """Mocks compare arguments, so nothing is injected for next to nothing."""
    await get(pausing(gone), session_timeout=ClientTimeout(total=10.0))

    assert [injected] == wire.timeouts


@pytest.mark.parametrize("decorators", [(), (retrying(1.0, attempt_timeout=2.0),)])
@pytest.mark.parametrize("given", ["5", object(), [5], ClientTimeout(total="5")])
async def test_timeout_that_is_none_is_for_aiohttp_to_refuse(wire, given, decorators):
    """It arrives as it was given, also where attempts have a timeout of their own."""
    await get(*decorators, timeout=given)

    assert given is wire.options[0]["timeout"]


async def test_deadline_passed_before_sending(wire):
    """Nothing is sent when no time is left, and the log says so."""
    with capture_logs() as logs, pytest.raises(ResponseTimeoutError) as caught:
        await get(pausing(11.0), session_timeout=ClientTimeout(total=10.0))

    assert [] == wire.calls
    assert caught.value is logs[0].response_cause
    assert (10.01, True) == (logs[0].duration, logs[0].is_complete)


async def test_deadline_that_a_decorator_moves_into_the_past(wire):
    """The request is not sent, nor cut: no time is left for it to begin."""

    @client_decorator
    async def hurry(delegate, ctx, request):
        await asyncio.sleep(2.0)
        ctx.set_response_timeout(1.0, ResponseTimeoutMode.SET_FROM_START)
        return await delegate.execute(ctx, request)

    with pytest.raises(ResponseTimeoutError, match="no time left before the request"):
        await get(hurry)

    assert [] == wire.calls


async def test_attempt_timeout_passed_before_sending(wire):
    """An attempt that was held up too long fails, and another one is made."""
    pauses = [3.0, 0.0]
    held_up = client_decorator(lambda delegate, ctx, request: wait(delegate, ctx))

    async def wait(delegate, ctx):
        await asyncio.sleep(pauses.pop(0))
        return await delegate.execute(ctx, ctx.request)

    response = await get(held_up, retrying(1.0, attempt_timeout=2.0))
    log = RequestLog.of(response)

    assert [4.0] == [call.at for call in wire.calls]
    assert type(log.children[0].response_cause) is AttemptTimeoutError
    assert 200 == log.response_status


async def test_body_that_was_not_sent_can_be_sent(wire):
    """An attempt that ended before sending has not used the body up."""

    async def body():
        yield b"abc"

    pauses = [3.0, 0.0]

    @client_decorator
    async def hold_up(delegate, ctx, request):
        await asyncio.sleep(pauses.pop(0))
        return await delegate.execute(ctx, request)

    response = await get(hold_up, retrying(1.0, attempt_timeout=2.0), data=body())

    assert 200 == response.status
    assert 1 == len(wire.calls)


async def test_attempt_timeout_is_the_total(wire):
    """Each attempt gets its own time, but no more than the call has left."""
    wire.takes, wire.answers = 2.0, [503] * 9
    limits = {"sock_read": 1.5, "sock_connect": 30}
    session_timeout = ClientTimeout(total=10.0, **limits)
    await get(retrying(1.0, attempt_timeout=3.0), session_timeout=session_timeout)

    assert [0.0, 3.0, 6.0, 9.0] == [call.at for call in wire.calls]
    assert [exact(total, **limits) for total in (3.0, 3.0, 3.0, 1.0)] == wire.timeouts


async def test_attempt_timeout_where_the_request_is_stricter(wire):
    """The smaller of the two holds, so aiohttp's own is left in place."""
    await get(retrying(1.0, attempt_timeout=30.0), timeout=5.0)

    assert [5.0] == wire.timeouts


async def test_timeout_that_a_decorator_put_in(wire):
    """A decorator's own limit of one attempt holds, within that of the call."""
    shorter = changing(lambda ctx, request: request.replace(timeout=2.0))
    longer = changing(
        lambda ctx, request: request.replace(timeout=ClientTimeout(99.0, sock_read=1.0))
    )
    none = changing(lambda ctx, request: request.replace(timeout=None))
    for decorator in (shorter, longer, none):
        await get(decorator, session_timeout=ClientTimeout(total=10.0))

    assert [2.0, exact(10.0, sock_read=1.0), exact(10.0)] == wire.timeouts


NOW, START, EXTEND = ResponseTimeoutMode


async def test_deadline_moved_from_inside_an_attempt(wire):
    """An attempt may move the deadline of the whole call, through its root."""
    wire.answers = [503]
    move = changing(lambda ctx, request: ctx.root.set_response_timeout(50.0, START))
    await get(move, retrying(1.0), session_timeout=ClientTimeout(total=10.0))

    assert [exact(50.0), exact(49.0)] == wire.timeouts
