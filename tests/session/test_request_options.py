"""Settings for the calls of a block: what they change."""

from __future__ import annotations

import asyncio

import pytest
from chains import URL, now, response_of, silence
from chains import retrying_session as session

from aioretry_smithy import (
    Backoff,
    RequestLog,
    ResponseTimeoutError,
    RetryConfig,
    RetryStopReason,
    RetryStrategy,
    capture_logs,
    request_options,
    smithy,
)
from aioretry_smithy.testing import ScriptedTransport

ALWAYS = RetryStrategy.on_server_error_status(Backoff.without_delay())


async def attempts_of(client, method="GET", **options):
    """Make one call and say how many attempts it made."""
    async with client.request(method, URL, **options) as response:
        return RequestLog.of(response).total_attempts


async def test_other_way_to_retry_holds_in_the_block_alone():
    """The calls before and after it are retried as ever."""
    async with session([503, 200, 503, 503, 200]) as client:
        before = await attempts_of(client)
        with request_options(retry=RetryConfig.no_retry()):
            inside = await attempts_of(client)
        after = await attempts_of(client)

    assert (2, 1, 2) == (before, inside, after)


async def test_other_way_to_retry_may_be_of_another_kind():
    """All settings of the configuration count, not only the strategy."""
    strategy = smithy.StandardRetryStrategy(max_attempts=2)
    with capture_logs() as logs, request_options(retry=RetryConfig(strategy)):
        await response_of(session([503, 503]))

    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == logs[0].stop_reason
    assert 472 + 14 == strategy.quota_for("localhost:80").available_capacity


@pytest.mark.parametrize("options", [{}, {"timeout": 60}])
async def test_response_timeout_has_precedence_over_all_others(options):
    """It comes before that of the session and that of the request."""
    with request_options(response_timeout=2.0), pytest.raises(ResponseTimeoutError):
        await response_of(session([silence], timeout=30.0), **options)

    assert 2.0 == now()


async def test_response_timeout_can_be_lifted():
    """None is no limit."""

    async def late(ctx, request):
        assert ctx.root.deadline is None
        await asyncio.sleep(60)
        return 200

    with request_options(response_timeout=None):
        await response_of(session([late], timeout=30.0))

    assert 60.0 == now()


@pytest.mark.parametrize(
    ("method", "idempotent", "attempts"),
    [
        ("POST", None, 1),
        ("POST", True, 2),
        ("GET", None, 2),
        ("GET", False, 1),
    ],
)
@pytest.mark.parametrize(
    ("strategy", "settings"),
    [
        (RetryStrategy.failsafe(Backoff.without_delay()), {}),
        (
            smithy.StandardRetryStrategy(),
            {"classifiers": (*smithy.DEFAULT_CLASSIFIERS, smithy.only_idempotent)},
        ),
    ],
)
async def test_caller_may_know_better_what_is_idempotent(
    strategy, settings, method, idempotent, attempts
):
    """Than the method alone."""
    with request_options(idempotent=idempotent):
        async with session([503, 200], strategy, **settings) as client:
            assert attempts == await attempts_of(client, method)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("retry", RetryStrategy.never(), "a RetryConfig or None"),
        ("response_timeout", 0, "finite and > 0, or None"),
        ("response_timeout", float("inf"), "finite and > 0, or None"),
        ("response_timeout", "3", "finite and > 0, or None"),
        ("idempotent", 1, "True, False or None"),
        ("attributes", ["tenant"], "a mapping or None"),
    ],
)
def test_argument_out_of_range_is_told_at_once(name, value, expected):
    """Before any call is made."""
    with pytest.raises(ValueError) as caught, request_options(**{name: value}):
        pass

    assert f"{name}: {value!r} (expected: {expected})" == str(caught.value)


async def test_attributes_are_those_of_the_moment():
    """Changes to the mapping later change no call."""
    attributes = {"tenant": 7}
    transport = ScriptedTransport([200])
    async with session(transport) as client:
        with request_options(attributes=attributes):
            attributes["tenant"] = 8
            await client.get(URL)

    assert {"tenant": 7} == transport.contexts[0].attributes
