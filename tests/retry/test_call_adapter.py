"""Attempts over HTTP: the count in a header, bodies that are drained."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import MagicMock

import aiohttp
import pytest
from calls import REQUEST, begin, call_of
from chains import Always, now, response_of, retrying, session

from aioretry_smithy import RequestLog, RetryStrategy, new_response
from aioretry_smithy._retry.call_adapter import HTTP
from aioretry_smithy.testing import ScriptedTransport


async def test_retry_count_header_is_absent_on_the_first_attempt_only():
    """The server is told how many attempts were made before."""
    transport = ScriptedTransport([503, 503, 200])
    await response_of(
        session(transport, retrying(Always(), max_total_attempts=3)),
        headers={"X-Shop": "7"},
    )

    assert [None, "1", "2"] == [
        request.headers.get("armeria-retry-count") for request in transport.requests
    ]
    assert ["7", "7", "7"] == [
        request.headers["X-Shop"] for request in transport.requests
    ]


async def test_retry_count_header_replaces_a_value_of_the_callers_own():
    """It is set, not appended; on the first attempt the caller's value stays."""
    transport = ScriptedTransport([503, 503])
    await response_of(
        session(transport, retrying(Always(), max_total_attempts=2)),
        headers={"Armeria-Retry-Count": "x"},
    )

    assert [["x"], ["1"]] == [
        request.headers.getall("armeria-retry-count") for request in transport.requests
    ]


@pytest.mark.parametrize(("name", "expected"), [("X-Attempt", "1"), (None, None)])
async def test_retry_count_header_can_be_renamed_and_switched_off(name, expected):
    """The name is a setting; None means no header."""
    transport = ScriptedTransport([503, 503])
    decorator = retrying(Always(), max_total_attempts=2, retry_count_header=name)
    await response_of(session(transport, decorator))

    assert expected == transport.requests[1].headers.get("X-Attempt")
    assert "armeria-retry-count" not in transport.requests[1].headers


async def test_first_attempt_sends_the_request_of_the_caller_untouched():
    """Mocks that compare arguments see what the caller passed."""
    transport = ScriptedTransport([200])
    decorator = retrying(RetryStrategy.failsafe(), attempt_timeout=3.0)
    await response_of(session(transport, decorator))

    assert {"allow_redirects": True} == transport.requests[0].options


async def test_timeout_of_a_strategy_that_looks_at_a_body_is_its_own():
    """No limit of the call has passed, so it is raised as it is."""
    call, failure = call_of(begin()), TimeoutError()

    async def look(response):
        raise failure

    with pytest.raises(TimeoutError) as caught:
        await HTTP.read(call, new_response(REQUEST), look)

    assert failure is caught.value


class TestDrain:
    """The rest of a body that is given up before a retry."""

    @pytest.mark.parametrize("delay", [0.0, 0.05, 0.25])
    async def test_drain_is_part_of_the_wait(self, delay):
        """A body that stalls does not make the next attempt late."""
        stalled: list[aiohttp.ClientResponse] = []

        def stall(ctx, request):
            response: Any = new_response(request, 503)
            response._connection = MagicMock()
            loop = asyncio.get_running_loop()
            protocol = aiohttp.client_proto.ResponseHandler(loop)
            protocol.connection_made(MagicMock())
            response.content = aiohttp.StreamReader(protocol, limit=1, loop=loop)
            stalled.append(response)
            return response

        decorator = retrying(delay)
        timeout = delay + 0.01
        response = await response_of(session([stall, 200], decorator, timeout=timeout))

        assert (200, delay) == (response.status, now())
        assert delay == RequestLog.of(response).children[0].delay
        assert stalled[0].closed
