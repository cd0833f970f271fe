"""The id of a call, which its lines, spans and notes share."""

from __future__ import annotations

import asyncio
import multiprocessing
import re

import pytest
from calls import begin, end, end_call, function, http, leave
from chains import in_threads, notes_of, response_of, session
from command_line import needs_posix

from aioretry_smithy import RequestLog


async def test_id_is_short_text():
    """Random bits of the process, and a number that grows."""
    first, second = begin().log.id, begin().log.id

    assert re.fullmatch(r"[a-z2-7]{8}-[1-9]\d*", first)
    process, number = first.split("-")
    assert f"{process}-{int(number) + 1}" == second


async def test_call_has_one_id_whoever_asks():
    """It is the same for a view made anew, and when the call is over."""
    ctx = begin()
    before = ctx.log.id
    end(ctx, 200)
    end_call(ctx)

    assert before == ctx.log.id == ctx.log.to_dict()["id"]


async def test_attempt_has_the_id_of_its_call_with_its_number():
    """Also where it was asked for first."""
    ctx = begin()
    attempts = [ctx.derive(ctx.request).log for _ in range(2)]
    second, first = attempts[1].id, attempts[0].id

    assert [f"{ctx.log.id}.1", f"{ctx.log.id}.2"] == [first, second]
    assert [first, second] == [each["id"] for each in ctx.log.to_dict()["children"]]


async def test_calls_inside_have_ids_of_their_own():
    """They are calls, not attempts."""
    outer = function("fetch")
    attempt = outer.derive(outer.request)
    inner = http("http://example.com/", attempt.log)

    assert inner.log.id.partition(".")[0] != outer.log.id
    assert "." not in inner.log.id
    assert [inner.log.id] == [
        each["id"] for each in outer.log.to_dict()["children"][0]["calls"]
    ]


async def test_call_that_nobody_looks_at_gets_no_id():
    """So it costs nothing."""
    before = begin().log.id
    response = await response_of(session([200]))
    after = RequestLog.of(response).id

    assert int(after.partition("-")[2]) == int(before.partition("-")[2]) + 1


async def test_threads_that_ask_at_once_get_one_id():
    """A line and a span may be written in different threads."""
    log, seen = begin().log, []
    in_threads(lambda: seen.append(log.id))

    assert 1 == len({*seen})


async def test_notes_end_with_the_id_of_their_attempt():
    """An exception leads to the lines of its call."""
    ctx, error = begin(), TimeoutError()
    for _ in range(2):
        attempt = ctx.derive(ctx.request)
        end(attempt, error)
    leave(ctx, error)

    assert [
        f"attempt {number}: TimeoutError, 0.000 s, id={ctx.log.id}.{number}"
        for number in (1, 2)
    ] == error.__notes__
    assert "attempt 1: TimeoutError, 0.000 s" == notes_of(error)[0]


@needs_posix("processes that are forked")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_processes_have_bits_of_their_own():
    """A fork begins anew, with other bits."""

    def ask(answers):
        answers.send([_new_id(), _new_id()])

    ours, theirs = multiprocessing.Pipe()
    before = _new_id()
    child = multiprocessing.get_context("fork").Process(target=ask, args=(theirs,))
    child.start()
    first, second = ours.recv()
    child.join()
    bits, first_number = first.split("-")

    assert bits == second.partition("-")[0]
    assert bits != before.partition("-")[0] == _new_id().partition("-")[0]
    assert "1" == first_number


def _new_id():
    async def ask():
        return begin().log.id

    return asyncio.run(ask())
