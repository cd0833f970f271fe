"""Responses in the log: once, with their bodies, and with what went wrong."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from calls import REQUEST, begin, function
from fake_responses import FakeResponse, FakeStream, FakeTimer

from aioretry_smithy import DecoratingClient, new_response
from aioretry_smithy._context.recording import record_result
from aioretry_smithy.testing import ScriptedTransport


async def test_response_that_is_whole_is_complete_at_once():
    """A response without a connection has nothing more to come."""
    ctx = begin()
    log = ctx.log
    record_result(ctx, new_response(REQUEST, body=b"abc"))

    assert log.is_complete
    assert (200, 3) == (log.response_status, log.response_length)


async def test_response_is_recorded_once():
    """Every client on the way may show a response to the log."""
    ctx = begin()
    log = ctx.log
    response = new_response(REQUEST)
    record_result(ctx, response)
    await asyncio.sleep(1.0)
    record_result(ctx, response)
    assert 0.0 == log.duration
    record_result(ctx, new_response(REQUEST, 201))

    assert (1.0, 201) == (log.duration, log.response_status)


@pytest.mark.parametrize(
    ("stream", "fired", "cause"),
    [
        (FakeStream(), False, type(None)),
        (FakeStream(), True, type(None)),
        (FakeStream(1), True, TimeoutError),
        (FakeStream(1, error=aiohttp.ClientPayloadError()), False, None),
        (FakeStream(1, error=aiohttp.SocketTimeoutError()), False, None),
        (FakeStream(1, error=aiohttp.ClientConnectionError()), False, type(None)),
        (FakeStream(1), False, type(None)),
    ],
)
async def test_end_of_a_body_has_a_cause_if_it_failed(stream, fired, cause):
    """A body read whole and one that was left early end without a cause."""
    ctx = begin()
    log = ctx.log
    stream._timer = FakeTimer(fired)
    response = FakeResponse(stream)
    record_result(ctx, response)
    assert not log.is_complete
    await asyncio.sleep(1.0)
    stream.total_bytes = 5
    response.connection.give_back()

    assert (1.0, 5) == (log.total_duration, log.response_length)
    if cause is None:
        assert stream.error is log.response_cause
    else:
        assert isinstance(log.response_cause, cause)


async def test_other_protocols_are_complete_at_the_headers():
    """A web socket's traffic is no body."""
    ctx = begin()
    log = ctx.log
    response = FakeResponse(FakeStream(1), status=101)
    record_result(ctx, response)

    assert log.is_complete
    assert [] == response.connection.callbacks


async def test_body_of_a_response_that_was_replaced_ends_unseen():
    """A decorator has sent twice, and ends the first response after the second."""
    ctx = begin()
    first = FakeResponse(FakeStream())
    record_result(ctx, first)
    record_result(ctx, new_response(REQUEST, 201, body=b"abc"))
    await asyncio.sleep(1.0)
    first.connection.give_back()

    assert (0.0, 3) == (ctx.log.total_duration, ctx.log.response_length)


class Forgetful(DecoratingClient):
    async def execute(self, ctx, request):
        return self.delegate.execute(ctx, request)


class Promise:
    def __await__(self):
        raise AssertionError
        yield


async def hang():
    await asyncio.sleep(9.0)


NONE = "response: None (expected: what the delegate returned"
EXPECTED = "a response: return await delegate.execute(ctx, request)"


@pytest.mark.parametrize(
    ("make", "source", "message"),
    [
        (lambda: None, None, f"{NONE})"),
        (lambda: None, Forgetful, f"{NONE}; Forgetful returned nothing)"),
        (hang, Forgetful, f"Forgetful returned a coroutine (expected: {EXPECTED})"),
        (Promise, Forgetful, f"Forgetful returned a Promise (expected: {EXPECTED})"),
        (dict, Forgetful, f"Forgetful returned a dict (expected: {EXPECTED})"),
        (bytes, Forgetful, f"Forgetful returned a bytes (expected: {EXPECTED})"),
        (hang, None, f"the transport returned a coroutine (expected: {EXPECTED})"),
        (
            lambda: asyncio.create_task(hang()),
            Forgetful,
            f"Forgetful returned a Task (expected: {EXPECTED})",
        ),
    ],
)
async def test_what_is_no_response_is_told(make, source, message):
    """Mostly an ``await`` was forgotten; what that began does not go on."""
    with pytest.raises(TypeError) as caught:
        record_result(begin(), make(), source)
    await asyncio.sleep(0)

    assert message == str(caught.value)


async def test_function_may_return_a_coroutine_but_not_that_of_a_client():
    """Any value is a result, and only the chain has clients."""
    ctx = function("f")
    forgetful = Forgetful(ScriptedTransport([]))
    record_result(ctx, awaited := hang())
    awaited.close()
    with pytest.raises(TypeError, match=r"^Forgetful returned a coroutine"):
        record_result(ctx, forgetful.delegate.execute(ctx, REQUEST), Forgetful)

    assert ctx.log.is_complete


async def test_what_has_the_attributes_of_no_response_is_told_as_it_is():
    """Python says which one is missing."""
    with pytest.raises(AttributeError, match="headers"):
        record_result(begin(), object())
