"""The log of a call, found at its response or its exception."""

from __future__ import annotations

import math

import pytest
from calls import REQUEST, begin, leave
from chains import URL, response_of, retrying, session

from aioretry_smithy import RequestLog, RetryStrategy, new_response


async def test_log_of_a_response():
    """A response leads to the log of the call, not of its last attempt."""
    async with session([503, 200], retrying()) as client, client.get(URL) as response:
        log = RequestLog.of(response)

    assert log is log.root
    assert 2 == log.total_attempts


async def test_log_of_an_exception():
    """An exception from a decorated session leads to the log too."""
    with pytest.raises(TimeoutError) as caught:
        await response_of(session([TimeoutError()], retrying(RetryStrategy.never())))

    assert TimeoutError is type(RequestLog.of(caught.value).response_cause)


def logged():
    ctx, error = begin(), ValueError()
    leave(ctx, error)
    return error, ctx.log


async def test_log_of_a_wrapped_exception():
    """Libraries wrap what we raise, with ``from`` or by raising while handling it."""
    inner, log = logged()
    explicit, implicit, both = KeyError(), KeyError(), KeyError()
    explicit.__cause__ = inner
    implicit.__context__ = explicit
    both.__cause__, both.__context__ = implicit, KeyError()

    assert log is RequestLog.of(explicit)
    assert log is RequestLog.of(implicit)
    assert log is RequestLog.of(both)


async def test_cause_goes_before_context():
    """Of two calls that failed, the one that was named as the cause is meant."""
    cause, log = logged()
    context, _ = logged()
    outer = KeyError()
    outer.__cause__, outer.__context__ = cause, context

    assert log is RequestLog.of(outer)


async def test_context_is_found_behind_a_cause_without_a_log():
    """A cause that leads nowhere does not hide the context."""
    outer, (context, log) = KeyError(), logged()
    outer.__cause__, outer.__context__ = ValueError(), context

    assert log is RequestLog.of(outer)


async def test_cycles_and_long_chains_end():
    """A chain that bites its tail is searched once; ten thousand links are fine."""
    first, second = KeyError(), KeyError()
    first.__cause__, second.__context__ = second, first
    assert RequestLog.of(first, None) is None
    error, log = logged()
    for _ in range(10_000):
        error, inner = KeyError(), error
        error.__cause__ = inner

    assert log is RequestLog.of(error)


@pytest.mark.parametrize("source", [ValueError("x"), None, 5, "text", object(), dict])
async def test_what_has_no_log(source):
    """Without a log there is the default, or an error that says so."""
    assert math.inf == RequestLog.of(source, math.inf)
    assert RequestLog.of(source, default=None) is None

    with pytest.raises(
        LookupError, match=r"^no log: .* of a decorated session or function$"
    ):
        RequestLog.of(source)


async def test_plain_response_has_no_log():
    """A response that no decorated session returned is told apart."""
    with pytest.raises(LookupError):
        RequestLog.of(new_response(REQUEST))
