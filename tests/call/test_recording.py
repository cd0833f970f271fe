"""Responses in the log: once, with their bodies, and with what went wrong."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from calls import REQUEST, begin
from fake_responses import FakeResponse, FakeStream, FakeTimer

from aioretry_smithy import new_response
from aioretry_smithy._call.recording import record_response


async def test_response_that_is_whole_is_complete_at_once():
    """A response without a connection has nothing more to come."""
    log = begin().log
    record_response(log, new_response(REQUEST, body=b"abc"))

    assert log.is_complete
    assert (200, 3) == (log.response_status, log.response_length)


async def test_response_is_recorded_once():
    """Every client on the way may show a response to the log."""
    log = begin().log
    response = new_response(REQUEST)
    record_response(log, response)
    await asyncio.sleep(1.0)
    record_response(log, response)
    assert 0.0 == log.duration
    record_response(log, new_response(REQUEST, 201))

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
    log = begin().log
    stream._timer = FakeTimer(fired)
    response = FakeResponse(stream)
    record_response(log, response)
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
    log = begin().log
    response = FakeResponse(FakeStream(1), status=101)
    record_response(log, response)

    assert log.is_complete
    assert [] == response.connection.callbacks
