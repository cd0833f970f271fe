"""Calls that aioresponses answers go through the chain and are recorded as given."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from chains import decorated
from yarl import URL

from aioretry_smithy import (
    Backoff,
    CircuitBreakerClient,
    LoggingClient,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)

URL_OF_ORDERS = "http://shop.example/orders"
RETRYING = RetryingClient.new_decorator(
    RetryStrategy.failsafe(Backoff.without_delay()), max_total_attempts=3
)


@pytest.fixture
def mocked(aioresponses_mock):
    return aioresponses_mock


@pytest.fixture
def builder():
    return decorated(
        SessionBuilder(),
        CircuitBreakerClient.new_per_host_decorator(),
        LoggingClient.new_decorator(),
        RETRYING,
    )


def calls(mocked, method="GET", url=URL_OF_ORDERS):
    """Return the keyword arguments of the calls that were recorded."""
    return [call.kwargs for call in mocked.requests[method, URL(url)]]


async def test_mocked_answers_are_retried(mocked, builder):
    """A mock is asked as often as a server would be."""
    mocked.get(URL_OF_ORDERS, status=503)
    mocked.get(URL_OF_ORDERS, payload={"n": 1})
    async with builder.build() as session, session.get(URL_OF_ORDERS) as response:
        body = await response.json()

    log = RequestLog.of(response)
    assert {"n": 1} == body
    assert [503, 200] == [child.response_status for child in log.children]
    assert log.is_complete


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"params": {"q": "1"}, "headers": {"X-Own": "1"}},
        {"timeout": aiohttp.ClientTimeout(total=3)},
        {"timeout": 3.0},
        {"raise_for_status": False},
    ],
)
async def test_first_attempt_is_recorded_as_it_was_given(mocked, builder, options):
    """Neither a timeout nor headers appear that the caller did not pass."""
    url = URL(URL_OF_ORDERS).with_query(options.get("params"))
    mocked.get(url, repeat=True)
    async with aiohttp.ClientSession() as plain, builder.build() as session:
        await plain.get(URL_OF_ORDERS, **options)
        await session.get(URL_OF_ORDERS, **options)

    without, through = calls(mocked, url=url)
    assert without == through


async def test_single_call_can_be_asserted(mocked, builder):
    """The usual assertion of a test suite goes on holding."""
    mocked.post(URL_OF_ORDERS, status=201)
    async with builder.build() as session:
        await session.post(URL_OF_ORDERS, json={"n": 1})

    mocked.assert_called_once_with(
        URL_OF_ORDERS, method="POST", data=None, json={"n": 1}
    )


async def test_second_attempt_differs_by_the_count_alone(mocked, builder):
    """A retry is recorded as the first call with its header."""
    mocked.get(URL_OF_ORDERS, status=503)
    mocked.get(URL_OF_ORDERS)
    async with builder.build() as session:
        await session.get(URL_OF_ORDERS)

    first, second = calls(mocked)
    assert {"armeria-retry-count": "1"} == second.pop("headers")
    assert first == second


async def test_session_built_before_the_mock(aioresponses_mock, builder):
    """The class is asked at the call, so the order does not matter."""
    aioresponses_mock.stop()
    async with builder.build() as session:
        aioresponses_mock.start()
        aioresponses_mock.get(URL_OF_ORDERS, body="mocked")
        async with session.get(URL_OF_ORDERS) as response:
            text = await response.text()

    assert "mocked" == text


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        ({"timeout": True}, asyncio.TimeoutError),
        ({"exception": aiohttp.ServerDisconnectedError()}, aiohttp.ClientError),
        ({"exception": aiohttp.ClientPayloadError("cut")}, aiohttp.ClientPayloadError),
    ],
)
async def test_mocked_failures_are_retried(mocked, builder, failure, kind):
    """Exceptions from a mock are failures like any other."""
    mocked.get(URL_OF_ORDERS, **failure)
    mocked.get(URL_OF_ORDERS)
    async with builder.build() as session:
        response = await session.get(URL_OF_ORDERS)

    first, last = RequestLog.of(response).children
    assert isinstance(first.response_cause, kind)
    assert 200 == last.response_status


async def test_call_without_a_mocked_answer(mocked, builder):
    """It fails as aioresponses has it fail, attempt by attempt."""
    async with builder.build() as session:
        with pytest.raises(aiohttp.ClientConnectionError, match="refused") as caught:
            await session.get(URL_OF_ORDERS)

    assert 3 == RequestLog.of(caught.value).total_attempts


async def test_raise_for_status_of_the_session(mocked):
    """The chain refuses the last answer, after the mock let all of them through."""
    mocked.get(URL_OF_ORDERS, status=503, repeat=True)
    builder = SessionBuilder(raise_for_status=True).decorator(RETRYING)
    async with builder.build() as session:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await session.get(URL_OF_ORDERS)

    assert 503 == caught.value.status
    assert 3 == len(calls(mocked))
