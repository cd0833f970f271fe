"""How long calls of the standard chain may take, and each attempt of them."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import ClientSession, ClientTimeout
from chains import URL, now, standard_session

from aioretry_smithy import (
    AttemptTimeoutError,
    RequestLog,
    ResponseTimeoutError,
    RetryConfig,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    decorate,
)
from aioretry_smithy.testing import ScriptedTransport


@pytest.mark.parametrize(
    "builder",
    [
        lambda: SessionBuilder.standard(response_timeout=5.0, attempt_timeout=7.0),
        lambda: SessionBuilder.standard(attempt_timeout=7.0).response_timeout(5.0),
        lambda: SessionBuilder.standard(
            timeout=ClientTimeout(total=5.0), attempt_timeout=7.0
        ),
        lambda: SessionBuilder.standard(
            response_timeout=5.0, retrying=RetryConfig.standard(attempt_timeout=7.0)
        ),
    ],
)
async def test_attempt_that_is_to_take_longer_than_the_call_is_refused(builder):
    """One of the two cannot be meant."""
    with pytest.raises(ValueError) as caught:
        builder().build()

    expected = "attempt_timeout: 7.0 (expected: <= response_timeout, 5.0)"
    assert expected == str(caught.value)


async def silence(ctx, request):
    """Answer nothing for a minute."""
    await asyncio.sleep(60.0)


@pytest.mark.parametrize(
    "builder",
    [
        lambda inside: SessionBuilder.standard(inside=inside, response_timeout=2.0),
        lambda inside: SessionBuilder.standard(inside=inside).response_timeout(2.0),
        lambda inside: SessionBuilder.standard(
            inside=inside, timeout=ClientTimeout(total=2.0)
        ),
        lambda inside: SessionBuilder.standard(
            inside=inside, response_timeout=2.0, retrying=RetryConfig.standard()
        ),
        lambda inside: (
            SessionBuilder()
            .decorator(inside[0])
            .decorator(RetryingClient.new_decorator(RetryConfig.standard()))
            .response_timeout(2.0)
        ),
    ],
)
async def test_attempt_ends_with_a_short_call_where_nobody_said_how_long_it_takes(
    builder,
):
    """Its ten seconds contradict no limit."""
    begun = now()
    async with builder([ScriptedTransport([silence])]).build() as client:
        with pytest.raises(ResponseTimeoutError) as caught:
            await client.get(URL)

    assert not isinstance(caught.value, AttemptTimeoutError)
    assert (2.0, 1) == (now() - begun, RequestLog.of(caught.value).total_attempts)


async def test_attempt_may_take_as_long_as_the_call():
    """That is no contradiction; neither is no limit at all."""
    for limits in (
        {"response_timeout": 10.0},
        {"response_timeout": None},
        {"attempt_timeout": None},
        {"retrying": None, "response_timeout": 1.0},
    ):
        async with standard_session([], **limits) as client:
            assert not client.closed


@pytest.mark.parametrize(
    ("options", "total"),
    [
        ({"timeout": ClientTimeout(total=12)}, 12.0),
        ({"timeout": ClientTimeout(sock_read=3)}, 30.0),
        ({"timeout": ClientTimeout(total=12), "response_timeout": 20.0}, 20.0),
        ({"timeout": ClientTimeout(total=12), "response_timeout": None}, None),
        ({"timeout": ClientTimeout(total=0)}, None),
        ({"timeout": ClientTimeout(total=-1)}, None),
        ({"timeout": ClientTimeout(total=0), "response_timeout": 20.0}, 20.0),
    ],
)
async def test_total_of_the_timeout_counts_unless_said_otherwise(options, total):
    """A limit that was given is not lifted silently."""
    async with standard_session([], **options) as client:
        assert total == client.timeout.total


def test_total_that_is_no_number_is_refused():
    """It must not be taken for no limit."""
    with pytest.raises(ValueError, match="seconds: '5'"):
        SessionBuilder.standard(timeout=ClientTimeout(total="5"))


async def test_no_limit_for_the_call_allows_any_for_its_attempts():
    """0 is no limit to aiohttp."""
    builder = SessionBuilder(timeout=ClientTimeout(total=0)).decorator(
        RetryingClient.new_decorator(RetryStrategy.never(), attempt_timeout=400.0)
    )

    assert "response_timeout=None" in builder.describe()
    async with builder.build() as client:
        assert not client.closed


async def test_contradiction_is_refused_by_every_session():
    """Aiohttp's default of five minutes counts too, and an existing session's."""
    retrying = RetryingClient.new_decorator(
        RetryStrategy.never(), attempt_timeout=400.0
    )
    with pytest.raises(ValueError, match="<= response_timeout, 300"):
        SessionBuilder().decorator(retrying).build()
    async with ClientSession(timeout=ClientTimeout(total=5)) as client:
        with pytest.raises(ValueError, match="<= response_timeout, 5"):
            decorate(client, retrying)
