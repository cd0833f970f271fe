"""aioresponses: beside the aiohttp that is installed, and through a chain."""

import asyncio
import sys

import aiohttp
import aioresponses
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
from aioretry_smithy.testing import patch_aioresponses

MOCKED = "http://h/orders"


@pytest.fixture(autouse=True)
def response_class(monkeypatch):
    """The class that aioresponses has by itself; it has it again after the test."""
    monkeypatch.setattr(aioresponses.core, "ClientResponse", aiohttp.ClientResponse)


async def mocked_text():
    with aioresponses.aioresponses() as mock:
        mock.get(MOCKED, body="mocked")
        async with aiohttp.ClientSession() as session, session.get(MOCKED) as response:
            return await response.text()


async def test_one_line_is_enough():
    """The call itself mends it, for as long as the process lasts."""
    patch_aioresponses()

    assert "mocked" == await mocked_text()
    assert "mocked" == await mocked_text()


async def test_block_is_undone_at_its_end():
    """A test that cares leaves nothing behind."""
    with patch_aioresponses():
        text = await mocked_text()

    assert "mocked" == text
    assert aiohttp.ClientResponse is aioresponses.core.ClientResponse


async def test_blocks_inside_each_other():
    """A fixture may mend what the conftest has mended."""
    with patch_aioresponses():
        with patch_aioresponses():
            pass
        text = await mocked_text()

    assert "mocked" == text
    assert aiohttp.ClientResponse is aioresponses.core.ClientResponse


async def test_blocks_that_overlap_leave_nothing_behind():
    """Blocks that end in the order in which they began undo it all the same."""
    first, second = patch_aioresponses(), patch_aioresponses()
    with first:
        pass
    with second:
        pass

    assert aiohttp.ClientResponse is aioresponses.core.ClientResponse


async def test_mocked_responses_are_of_aiohttp_s_class():
    """A test that asks for the class goes on passing."""
    with patch_aioresponses(), aioresponses.aioresponses() as mock:
        mock.get(MOCKED, payload={"n": 1})
        async with aiohttp.ClientSession() as session, session.get(MOCKED) as response:
            payload = await response.json()

    assert {"n": 1} == payload
    assert isinstance(response, aiohttp.ClientResponse)


def test_missing_aioresponses_says_what_to_install(monkeypatch):
    """The error names the package and the command."""
    monkeypatch.setitem(sys.modules, "aioresponses", None)
    monkeypatch.delitem(sys.modules, "aioresponses.core")

    with pytest.raises(ModuleNotFoundError, match=r": pip install aioresponses$"):
        patch_aioresponses()


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
