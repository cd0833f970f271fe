"""The context of a call: attempts, attributes and the time that is left."""

import asyncio
import math

import pytest
from calls import REQUEST, begin
from chains import SAFELY, URL, raises_exactly, retrying, session

from aioretry_smithy import (
    ClientRequestContext,
    HttpRequest,
    ResponseTimeoutMode,
    client_decorator,
)

NOW = ResponseTimeoutMode.SET_FROM_NOW
START = ResponseTimeoutMode.SET_FROM_START
EXTEND = ResponseTimeoutMode.EXTEND


async def test_child_is_an_attempt():
    """Each child has the next number, its own request and its own log."""
    ctx = begin()
    request = REQUEST.with_header("A", "1")
    first, second = ctx.derive(REQUEST), ctx.derive(request)

    assert [1, 2] == [first.attempt, second.attempt]
    assert ctx is second.parent is second.root
    assert request is second.request
    assert (first.log, second.log) == ctx.log.children


async def test_attempt_of_an_attempt_belongs_to_the_call():
    """All attempts are children of the root, whichever context made them."""
    ctx = begin()
    first = ctx.derive(REQUEST)
    second = first.derive(REQUEST)

    assert (1, 2) == (first.attempt, second.attempt)
    assert ctx is second.parent
    assert (first.log, second.log) == ctx.log.children


async def test_attributes_belong_to_the_call():
    """The next attempt finds the notes of the one before."""
    ctx = begin()
    ctx.derive(REQUEST).attributes["seen"] = 1

    assert {"seen": 1} == ctx.attributes
    assert ctx.attributes is ctx.derive(REQUEST).attributes


async def test_time_runs_out():
    """The time that remains shrinks to zero and not below."""
    ctx = begin(timeout=10.0)
    await asyncio.sleep(4.0)
    assert 10.0 == ctx.deadline
    assert 6.0 == ctx.remaining()
    await asyncio.sleep(7.0)

    assert 0.0 == ctx.remaining()


@pytest.mark.parametrize(
    ("of_call", "of_attempt", "deadline"),
    [
        (None, None, None),
        (10.0, None, 10.0),
        (None, 3.0, 7.0),
        (10.0, 3.0, 7.0),
        (5.0, 3.0, 5.0),
    ],
)
async def test_attempt_ends_with_its_call_at_the_latest(of_call, of_attempt, deadline):
    """An attempt begun at 4 s ends after its own time, but never after the call."""
    ctx = begin(timeout=of_call)
    await asyncio.sleep(4.0)
    attempt = ctx.derive(REQUEST, timeout=of_attempt)

    assert deadline == attempt.deadline


@pytest.mark.parametrize(
    ("limit", "seconds", "mode", "deadline"),
    [
        (10.0, 3.0, NOW, 7.0),
        (None, 3.0, NOW, 7.0),
        (10.0, 3, START, 3.0),
        (10.0, 20.0, START, 20.0),
        (10.0, 5.0, EXTEND, 15.0),
        (10.0, -5.0, EXTEND, 5.0),
        (10.0, 0.0, EXTEND, 10.0),
        (None, 5.0, EXTEND, None),
        (10.0, 3.0, "set_from_start", 3.0),
        (10.0, 5.0, "extend", 15.0),
    ],
)
async def test_deadline_of_a_call_is_moved(limit, seconds, mode, deadline):
    """Four seconds into a call, each mode counts from its own point."""
    ctx = begin(timeout=limit)
    await asyncio.sleep(4.0)
    ctx.set_response_timeout(seconds, mode)

    assert deadline == ctx.deadline


@pytest.mark.parametrize(
    ("seconds", "mode", "deadline"),
    [(1.0, NOW, 6.0), (2.5, START, 6.5), (1.0, EXTEND, 8.0), (99.0, NOW, 10.0)],
)
async def test_deadline_of_an_attempt_is_moved(seconds, mode, deadline):
    """A child moves its own deadline, within its call's, and nobody else's."""
    ctx = begin(timeout=10.0)
    await asyncio.sleep(4.0)
    attempt, other = (ctx.derive(REQUEST, timeout=3.0) for _ in range(2))
    await asyncio.sleep(1.0)
    attempt.set_response_timeout(seconds, mode)

    assert deadline == attempt.deadline
    assert 7.0 == other.deadline
    assert 10.0 == ctx.deadline


async def test_moving_the_call_moves_its_attempts():
    """An attempt under way ends with its call, also when that ends earlier now."""
    ctx = begin(timeout=10.0)
    attempt = ctx.derive(REQUEST, timeout=8.0)
    ctx.set_response_timeout(2.0)

    assert 2.0 == attempt.deadline


async def test_deadline_is_cleared():
    """On the call nothing is left of it; on an attempt the call's remains."""
    ctx = begin(timeout=10.0)
    attempt = ctx.derive(REQUEST, timeout=3.0)
    attempt.clear_response_timeout()
    assert 10.0 == attempt.deadline
    ctx.clear_response_timeout()

    assert ctx.deadline is attempt.deadline is None


@pytest.mark.parametrize(
    ("seconds", "mode", "message"),
    [
        (0, NOW, "seconds: 0 (expected: finite and > 0)"),
        (-1.0, START, "seconds: -1.0 (expected: finite and > 0)"),
        (math.inf, NOW, "seconds: inf (expected: finite and > 0)"),
        (math.nan, EXTEND, "seconds: nan (expected: finite)"),
        ("5", NOW, "seconds: '5' (expected: finite and > 0)"),
        (True, NOW, "seconds: True (expected: finite and > 0)"),
        (None, NOW, "seconds: None (expected: finite and > 0)"),
        (5.0, "later", "mode: 'later' (expected: a ResponseTimeoutMode)"),
        (5.0, None, "mode: None (expected: a ResponseTimeoutMode)"),
    ],
)
async def test_bad_timeouts_are_refused(seconds, mode, message):
    """A bad argument is named, and the deadline stays where it was."""
    ctx = begin(timeout=10.0)

    with raises_exactly(message):
        ctx.set_response_timeout(seconds, mode)
    assert 10.0 == ctx.deadline


async def test_repr_names_request_and_attempt():
    """A context in a debugger says which call and which attempt it is."""
    ctx = begin()

    assert "<ClientRequestContext GET http://example.com/>" == repr(ctx)
    assert repr(ctx.derive(REQUEST)).endswith(", attempt 1>")


async def test_repr_is_one_line():
    """Characters at which a terminal or a log would break are escaped."""
    ctx = begin(HttpRequest("GE\nT", "http://h/"))

    assert "<ClientRequestContext GE\\nT http://h/>" == repr(ctx)


async def test_extension_of_an_attempt_starts_from_the_deadline_that_it_has():
    """Also where that is the deadline of the call."""
    ctx = begin(timeout=10.0)
    child = ctx.derive(REQUEST)
    child.set_response_timeout(-4.0, ResponseTimeoutMode.EXTEND)

    assert (6.0, 10.0) == (child.remaining(), ctx.remaining())


async def test_public_context_has_no_private_toolbox():
    """The public names are for decorators; each is documented."""
    names = {*dir(ClientRequestContext), *ClientRequestContext.__annotations__}
    public = {name for name in names if not name.startswith("_")}

    assert public == {
        *"""
        attempt attributes clear_response_timeout deadline derive endpoint log options
        parent remaining request root set_response_timeout
        """.split()
    }


async def test_attributes_outlive_the_call_for_an_attempt_that_is_kept():
    """Its parent need not have been asked for before."""
    kept = []

    @client_decorator
    async def keeping(delegate, ctx, request):
        ctx.attributes["shop"] = 7
        kept.append(ctx)
        return await delegate.execute(ctx, request)

    async with session([200], keeping, retrying(SAFELY)) as client:
        await client.get(URL)
    (attempt,) = kept

    assert {"shop": 7} == attempt.attributes == attempt.parent.attributes
    assert attempt.parent is attempt.root
    assert (1, None) == (attempt.attempt, attempt.root.attempt)
