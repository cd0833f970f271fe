"""When lines are written: what can be chosen, and what is written at once anyway."""

from __future__ import annotations

import asyncio
import logging.handlers
from typing import TYPE_CHECKING, Any

import pytest
from chains import bad_argument, log_of, log_of_cancelled, retrying, session, silence

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    LoggingClient,
    LoggingRpcClient,
    SessionBuilder,
)

if TYPE_CHECKING:
    from aioretry_smithy import Decorator

RETRYING = retrying(max_total_attempts=3)


@pytest.fixture
def written(logger):
    """A function that tells what was written: the first words."""
    handler = logging.handlers.BufferingHandler(100)
    logger.addHandler(handler)
    return lambda: [record.getMessage().split(":")[0] for record in handler.buffer]


@pytest.fixture
def after_body(logger) -> Decorator:
    """A logging client that waits for the end of bodies."""
    return LoggingClient.new_decorator(logger, log_after="body")


PAIR = ["Request", "Response"]


@pytest.mark.parametrize("answer", [200, (200, b"all of it"), 404, TimeoutError()])
async def test_nothing_is_waited_for_where_all_has_come(written, after_body, answer):
    """A failure, and an answer whose body is here: the pair comes at once."""
    await log_of(session([answer], after_body))

    assert PAIR == written()


async def test_cancelled_call_is_told_at_once(written, after_body):
    """Before its headers nothing of a body is to be waited for."""
    await log_of_cancelled(session([silence], after_body), 1.0)

    assert PAIR == written()


async def test_refused_call_is_told_at_once(written, after_body):
    """Nor where nothing was sent."""
    breaker = CircuitBreaker("orders")
    breaker.enter_state(CircuitState.FORCED_OPEN)
    refusing = CircuitBreakerClient.new_decorator(breaker)
    await log_of(session([], refusing, after_body))

    assert PAIR == written()


async def test_each_attempt_and_the_call_have_a_pair(written, after_body):
    """Inside the retrying client and outside, as at the headers."""
    await log_of(session([503, OSError(), 200], after_body, RETRYING, after_body))

    assert PAIR * 4 == written()


async def test_failure_that_replaced_an_answer_is_told_at_once(written, after_body):
    """A decorator may have raised what is no failure of the body."""

    async def refuse(ctx: Any, request: Any) -> Any:
        await asyncio.sleep(0.1)
        raise ValueError("no")

    await log_of(session([refuse], after_body))

    assert PAIR == written()


@pytest.mark.parametrize("value", ["end", None, True, "Body", b"body"])
def test_what_it_may_be(value):
    """One of two words."""
    with bad_argument("log_after", value, '"headers" or "body"'):
        LoggingClient.new_decorator(log_after=value)


def test_functions_have_no_such_argument():
    """What a function returns has no body that comes later."""
    with pytest.raises(TypeError, match="log_after"):
        LoggingRpcClient.new_decorator(log_after="body")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("settings", "said"), [({}, ""), ({"log_after": "body"}, ", log_after='body'")]
)
def test_chain_says_when_it_is_not_at_the_headers(settings, said):
    """In its description, as the last of the settings."""
    decorator = LoggingClient.new_decorator(**settings)
    (line,) = [
        line
        for line in SessionBuilder().decorator(decorator).describe().splitlines()
        if "LoggingClient" in line
    ]

    assert line.endswith(f"sensitive_query_parameters=(){said})")
