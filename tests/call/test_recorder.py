"""What is written into the records of a call, once and up to its end."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import re
import weakref

import aiohttp
import pytest
from calls import REQUEST, begin, begin_body, call_of, end, function, http, leave
from chains import in_threads, notes_of, response_of, session
from command_line import needs_posix
from multidict import CIMultiDict

from aioretry_smithy import RequestLog
from aioretry_smithy._call.recorder import (
    begin_after_wait,
    cause_of,
    note_defaults,
    record_end_of_body,
    record_failed_body,
    record_failure,
    record_injected,
    record_return,
)
from aioretry_smithy._call.recorder import end_call as finish
from aioretry_smithy._text.mask import Mask


def answered(call):
    """Let a response arrive whose body is to come, and return what is known of it."""
    begin_body(call)
    return call.outcome


ENDS = {
    "answer": lambda call: end(call, 200),
    "return": lambda call: record_return(call, call),
    "failure": lambda call: record_failure(call, call, OSError()),
    "body": lambda call: record_end_of_body(call, answered(call)),
    "failed body": lambda call: record_failed_body(call, answered(call), OSError()),
    "call": finish,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_each_end_wakes_who_waits(end):
    """Once: each waiter looks by itself whether that was what it waits for."""
    woken = []
    call = call_of(begin())
    call.waiters = (lambda: woken.append(call),)
    end(call)

    assert [call] == woken


async def test_body_of_a_response_that_was_replaced_fails_unseen():
    """A decorator has sent once more, and that is the outcome."""
    call = call_of(begin())
    first = answered(call)
    second = answered(call)

    assert not record_failed_body(call, first, OSError())
    assert second.body_ended is None


async def test_injected_is_what_has_an_outcome():
    """A fault that only waits makes none."""
    call = call_of(begin())
    record_injected(call)
    before = call.outcome.is_injected
    outcome = answered(call)
    record_injected(call)

    assert (False, True) == (before, outcome.is_injected)


async def test_headers_of_the_session_are_those_of_the_first_request():
    """Later requests that are sent with others have their own."""
    call = call_of(begin(default_headers=CIMultiDict(A="1")))
    first, second, third = (call.begin_request(REQUEST) for _ in range(3))
    note_defaults(call, first, CIMultiDict(A="2"), REQUEST)
    note_defaults(call, second, CIMultiDict(A="2"), REQUEST)
    note_defaults(call, third, CIMultiDict(A="3"), REQUEST.with_header("B", "4"))

    assert CIMultiDict(A="2") == call.default_headers
    assert [None, None, CIMultiDict(A="3", B="4")] == [
        each.sent_headers for each in call.sent
    ]


async def test_wait_for_what_was_sent_before_is_nobody_s():
    """A decorator sends again within the attempt."""
    call = call_of(begin())
    sent = call.begin_request(REQUEST)
    sent.was_sent = True
    begin_after_wait(call, sent, 1.0)

    assert (None, None) == (call.delay, call.delay_source)
    assert 0.0 == sent.started


async def test_call_that_is_over_keeps_nothing_of_the_caller_s():
    """Of its failures only copies, and the request without its body."""
    request = REQUEST.replace(data=b"body")
    ctx = begin(request)
    call = call_of(ctx)
    cause = call.retry_error = aiohttp.ClientError()
    record_failure(call, call, cause)
    finish(call)

    assert call.request.options["data"] is None
    assert cause is cause_of(call)
    assert not isinstance(call.retry_error, BaseException)
    assert not isinstance(call.outcome.cause, BaseException)


async def test_id_is_short_text():
    """Random bits of the process, and a number that grows."""
    first, second = begin().log.id, begin().log.id

    assert re.fullmatch(r"[a-z2-7]{8}-[1-9]\d*", first)
    process, number = first.split("-")
    assert f"{process}-{int(number) + 1}" == second


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


async def test_call_inside_does_not_keep_the_call_around_it_alive():
    """The log of a call inside, kept alone, keeps nothing of the call around it."""
    outer = begin()
    _inner = begin(inside=outer.log).log
    outer_log = weakref.ref(outer.log)
    gc.disable()
    try:
        del outer

        assert outer_log() is None
    finally:
        gc.enable()


def masking(name, inside=None):
    return begin(mask=Mask((), [name]), inside=inside).log


async def test_secrets_of_a_tree_are_hidden_in_all_of_it():
    """A failure inside is shown around it as well, and each view shows all inside."""
    outer = masking("a")
    middle = masking("b", outer)
    inner = masking("c", middle)
    url = "http://example.com/?a=1&b=2&c=3&d=4"

    assert "http://example.com/?a=****&b=****&c=****&d=4" == outer.mask.text(url)
    assert "http://example.com/?a=****&b=****&c=****&d=4" == middle.mask.text(url)
    assert "http://example.com/?a=****&b=****&c=****&d=4" == inner.mask.text(url)


async def test_mask_stays_where_a_call_inside_hides_no_more():
    """Most calls hide the usual secrets, so that no mask is made for them."""
    outer = begin().log
    before = outer.mask
    begin(inside=outer)
    unchanged = outer.mask
    masking("a", outer)
    after = outer.mask
    masking("a", outer)

    assert before is unchanged
    assert after is outer.mask is not before
