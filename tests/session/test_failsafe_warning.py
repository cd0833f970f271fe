"""``failsafe()`` around a function that may not be done twice: one warning."""

from __future__ import annotations

import warnings

import pytest
from chains import NOW, bad_argument

from aioretry_smithy import (
    LoggingRpcClient,
    RetryConfig,
    RetryConfigMapping,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    rpc,
    smithy,
)

FAILSAFE = RetryStrategy.failsafe(NOW)
UNPROCESSED = RetryStrategy.on_unprocessed(NOW)
RULE = RetryRule(exceptions=[OSError], backoff=NOW)


async def fetch():
    raise ConnectionResetError


@pytest.mark.parametrize(
    "how",
    [
        FAILSAFE,
        UNPROCESSED | FAILSAFE,
        FAILSAFE | RetryStrategy.never(),
        RetryConfig(FAILSAFE),
        RetryConfig.standard(),
    ],
    ids=repr,
)
def test_function_that_is_hardly_retried_is_told(how):
    """Where it is decorated, once, with both remedies."""
    retrying = RetryingRpcClient.new_decorator(how)
    with pytest.warns(RuntimeWarning) as caught:
        rpc(retrying, LoggingRpcClient.new_decorator(), name="reports.fetch")(fetch)

    (warning,) = caught
    message = str(warning.message)
    assert message.startswith("reports.fetch: RetryStrategy.failsafe() ")
    assert "rpc(..., idempotent=True)" in message
    assert "RetryRule(exceptions=[...], on_timeout=True)" in message
    assert __file__ == warning.filename


def test_warning_points_at_the_decorated_function():
    """At the line of its decorator."""
    with pytest.warns(RuntimeWarning) as caught:

        @rpc(RetryingRpcClient.new_decorator(FAILSAFE))
        async def operation(): ...

    with pytest.warns(RuntimeWarning) as again:
        rpc(RetryingRpcClient.new_decorator(FAILSAFE))(operation.__wrapped__)

    assert operation.__wrapped__.__code__.co_firstlineno == caught[0].lineno
    assert again[0].lineno > caught[0].lineno
    assert str(caught[0].message).startswith(f"{operation.__qualname__}: ")


@pytest.mark.parametrize(
    ("how", "options"),
    [
        (FAILSAFE, {"idempotent": True}),
        (FAILSAFE, {"idempotent": False}),
        (UNPROCESSED, {}),
        (RULE, {}),
        (RULE | FAILSAFE, {}),
        (FAILSAFE | RULE, {}),
        (RetryStrategy.never(), {}),
        (RetryStrategy.on_server_error_status(NOW), {}),
        (smithy.StandardRetryStrategy(), {}),
        (RetryConfig(FAILSAFE, max_total_attempts=1), {}),
        (RetryConfigMapping.of(lambda *_: "all", lambda _: RetryConfig(FAILSAFE)), {}),
    ],
    ids=repr,
)
async def test_everything_else_is_left_alone(how, options):
    """What says what it means, and what retries more than that."""
    with warnings.catch_warnings(action="error"):
        decorated = rpc(RetryingRpcClient.new_decorator(how), **options)(fetch)

        with pytest.raises(ConnectionResetError):
            await decorated()


def test_function_without_retries_is_left_alone():
    """It asks nobody."""
    with warnings.catch_warnings(action="error"):
        assert callable(rpc()(fetch))


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_declaration_must_be_one(value):
    """As for any other setting."""
    with bad_argument("idempotent", value, "True or False"):
        rpc(idempotent=value)
