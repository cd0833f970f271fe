"""The notes on an exception that ended a call."""

from __future__ import annotations

import asyncio
import pickle

from calls import begin, end, end_call, function, http, leave
from chains import notes_of

from aioretry_smithy._log.request_log import add_notes


def fail(ctx, error, attempts=2):
    """End a call with a failure, after so many attempts that ended with it."""
    for _ in range(attempts):
        attempt = ctx.derive(ctx.request)
        end(attempt, error)
    leave(ctx, error)
    end_call(ctx, attempt)


async def test_notes_tell_every_attempt():
    """An exception gets one note per attempt, in order."""
    ctx = begin()
    first = ctx.derive(ctx.request)
    await asyncio.sleep(0.25)
    end(first, 500, delay=1.0)
    end(ctx.derive(ctx.request), TimeoutError())
    error = TimeoutError()
    add_notes(ctx.log, error)

    assert [
        "attempt 1: 500 Internal Server Error, 0.250 s, then waited 1.000 s (backoff)",
        "attempt 2: TimeoutError, 0.000 s",
    ] == notes_of(error)


async def test_single_attempt_has_no_note():
    """The exception says enough there."""
    ctx, error = begin(), TimeoutError()
    end(ctx.derive(ctx.request), error)
    add_notes(ctx.log, error)

    assert not hasattr(error, "__notes__")


async def test_notes_of_an_earlier_call_go():
    """An exception that is raised again and again does not collect notes for ever."""
    error = TimeoutError()
    error.add_note("the caller's own")
    for attempts in (3, 2, 2):
        ctx = begin()
        for _ in range(attempts):
            end(ctx.derive(ctx.request), error)
        add_notes(ctx.log, error)
    assert [
        "the caller's own",
        "attempt 1: TimeoutError, 0.000 s",
        "attempt 2: TimeoutError, 0.000 s",
    ] == notes_of(error)
    add_notes(begin().log, error)

    assert ["the caller's own"] == notes_of(error)


async def test_exception_keeps_the_notes_of_calls_inside():
    """One that ends a call inside and the call around it has the notes of both."""
    outer, error = function("fetch"), TimeoutError("late")
    first, second = outer.derive(outer.request), outer.derive(outer.request)
    end(first, LookupError(), delay=1.0)
    fail(http("http://example.com/", second.log), error)
    end(second, error)
    leave(outer, error, is_from_inside=True)

    assert [
        "attempt 1: TimeoutError: late, 0.000 s",
        "attempt 2: TimeoutError: late, 0.000 s",
        "attempt 1 of fetch: LookupError, 0.000 s, then waited 1.000 s (backoff)",
        "attempt 2 of fetch: TimeoutError: late, 0.000 s",
    ] == notes_of(error)
    assert error.__notes__ == pickle.loads(pickle.dumps(error)).__notes__


async def test_exception_keeps_notes_through_a_call_that_adds_none():
    """A call between two others, which made one attempt, takes nothing away."""
    outer, error = function("outer"), TimeoutError()
    between = function("between", outer.log)
    fail(http("http://example.com/", between.log), error)
    for ctx in between, outer:
        leave(ctx, error, is_from_inside=True)

    assert 2 == len(error.__notes__)


async def test_exception_loses_the_notes_of_another_call_inside():
    """One that is raised again and again has the notes of its last way out."""
    outer, error = function("outer"), TimeoutError()
    for attempts in (3, 2):
        fail(function("inner", outer.log), error, attempts)
    leave(outer, error, is_from_inside=True)

    assert [
        "attempt 1 of inner: TimeoutError, 0.000 s",
        "attempt 2 of inner: TimeoutError, 0.000 s",
    ] == notes_of(error)


async def test_names_of_calls_are_masked_and_escaped():
    """A call that is named after its URL has no secret in its notes."""
    ctx, error = function("http://user:S3CR3T@example.com/\n"), TimeoutError()
    fail(ctx, error)

    assert (
        r"attempt 1 of http://****@example.com/\n: TimeoutError, 0.000 s"
        == (notes_of(error)[0])
    )
