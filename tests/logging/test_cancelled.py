"""The lines of calls that their caller gave up."""

from __future__ import annotations

import asyncio

import pytest
from chains import bad_argument, log_of_cancelled, retrying, session
from lines_sink import call

from aioretry_smithy import (
    HedgingClient,
    LoggingClient,
    LoggingRpcClient,
    RetryingRpcClient,
    RetryRule,
    client_decorator,
    rpc,
)

DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40
RETRYING = retrying(max_total_attempts=3)
LEVEL = "a logging level, an int > 0, or a plain function of the log"


async def silence(ctx, request):
    """Answer nothing for a minute."""
    await asyncio.sleep(60)


@client_decorator
async def slow(delegate, ctx, request):
    """Think for a minute before the call."""
    await asyncio.sleep(60)
    return await delegate.execute(ctx, request)


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("log_after", ["headers", "body"])
async def test_a_call_that_its_caller_gives_up_is_no_failure(
    new, sink, outside, log_after
):
    """Its pair is at DEBUG, with its cause."""
    logging_ = new(log_after=log_after)
    chain = [RETRYING, logging_] if outside else [logging_, RETRYING]
    await log_of_cancelled(session([silence], *chain), 1.0)

    assert [("Request", DEBUG), ("Response", DEBUG)] == sink.kinds
    assert "cause=CancelledError" in sink.lines[1]


async def test_a_wait_that_is_given_up_is_no_failure(new, sink):
    """Nor is it what the last answer was."""
    await log_of_cancelled(session([503], RETRYING, new()), 0.25)

    assert [("Request", DEBUG), ("Response", DEBUG)] == sink.kinds


async def test_what_ends_the_program_is_no_failure(new, sink):
    """As Ctrl-C does, where nothing catches it before."""
    outcome = await call([KeyboardInterrupt()], new())

    assert isinstance(outcome, KeyboardInterrupt)
    assert [("Request", DEBUG), ("Response", DEBUG)] == sink.kinds


@pytest.mark.parametrize(
    ("threshold", "levels", "written"),
    [
        (DEBUG, (DEBUG, ERROR), [("Request", DEBUG), ("Response", ERROR)]),
        (INFO, (DEBUG, DEBUG), []),
        (INFO, (DEBUG, INFO), [("Request", INFO), ("Response", INFO)]),
        (INFO, (INFO, DEBUG), [("Request", INFO), ("Response", INFO)]),
        (DEBUG, (DEBUG, lambda log: None), [("Request", DEBUG), ("Response", DEBUG)]),
        (DEBUG, (DEBUG, lambda log: ERROR), [("Request", DEBUG), ("Response", ERROR)]),
    ],
)
async def test_level_of_cancelled_calls(logger, new, sink, threshold, levels, written):
    """A pair or nothing, as of failures; the level of these is not asked."""
    logger.setLevel(threshold)
    logging_ = new(
        request_log_level=levels[0],
        cancelled_log_level=levels[1],
        failure_response_log_level=pytest.fail,
    )
    await log_of_cancelled(session([silence], logging_), 1.0)

    assert written == sink.kinds


async def test_sampler_of_failures_picks_cancelled_calls_too(new, sink):
    """They are no successes."""
    await log_of_cancelled(session([silence], new(failure_sampling_rate=0.0)), 1.0)

    assert [] == sink.kinds


@pytest.mark.parametrize("new_decorator", [LoggingClient, LoggingRpcClient])
@pytest.mark.parametrize("level", [0, -1, True, "DEBUG", None])
def test_bad_levels_are_refused(new_decorator, level):
    """Where the decorator is made."""
    with bad_argument("cancelled_log_level", level, LEVEL):
        new_decorator.new_decorator(cancelled_log_level=level)


async def test_loser_of_a_race_is_no_cancelled_call(new, sink):
    """A hedge won: its level is that of successes."""
    hedging = HedgingClient.new_decorator(0.5)
    logging_ = new(successful_response_log_level=INFO, cancelled_log_level=ERROR)
    await call([silence, 200], logging_, hedging)
    await asyncio.sleep(0)

    assert {INFO} == {level for kind, level in sink.kinds if kind == "Response"}
    assert 4 == len(sink.kinds)


@pytest.mark.parametrize("decorators", [(), (slow,)], ids=["function", "decorator"])
@pytest.mark.parametrize("has_retries", [False, True])
async def test_what_its_own_deadline_cuts_is_a_failure(
    logger, sink, decorators, has_retries
):
    """Though the function, or a decorator around it, is ended by a cancellation."""
    logging_ = LoggingRpcClient.new_decorator(logger)
    retries = RetryingRpcClient.new_decorator(RetryRule(on_timeout=True), 1, 1.0)
    chain = (*decorators, logging_, *([retries] if has_retries else []))

    @rpc(*chain, response_timeout=None if has_retries else 1.0, idempotent=True)
    async def work():
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await work()

    assert [("Request", DEBUG), ("Response", WARNING)] == sink.kinds


async def test_a_function_that_is_given_up_is_no_failure(logger, sink):
    """Nor is a call inside."""
    loud = LoggingClient.new_decorator(logger)

    async with session([silence], loud) as client:

        @rpc(LoggingRpcClient.new_decorator(logger), response_timeout=30.0)
        async def work():
            await client.get("http://example.com/")

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await work()

    assert {DEBUG} == {level for _, level in sink.kinds}
    assert 4 == len(sink.kinds)
