"""Levels of lines: by outcome, by logger, by a function, and of cancelled calls."""

import asyncio
import logging

import aiohttp
import pytest
from chains import bad_argument, log_of_cancelled, retrying, session
from lines_sink import URL, CountingFormatter, call

from aioretry_smithy import (
    HedgingClient,
    LoggingClient,
    LoggingRpcClient,
    RetryingClient,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    client_decorator,
    is_timeout,
    rpc,
)

DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


REQUEST, SUCCESS, FAILURE = (
    "request_log_level",
    "successful_response_log_level",
    "failure_response_log_level",
)


EXPECTED = "(expected: a level such as logging.INFO, or None)"


TWICE = RetryingClient.new_decorator(RetryStrategy.failsafe(), max_total_attempts=2)


@pytest.fixture
def written(logger):
    """The word and the level of each line that was written."""
    lines = []

    class Keeping(logging.Handler):
        def emit(self, record):
            lines.append((record.getMessage().partition(":")[0], record.levelno))

    logger.addHandler(Keeping())
    return lines


def by_outcome(log):
    """Choose a level by status and by exception, and leave the rest to the default."""
    if is_timeout(log.response_cause):
        return ERROR
    return INFO if log.response_status == 404 else None


def nothing(log):
    """Leave the level to the default."""


@pytest.mark.parametrize(
    ("name", "level_of", "answer", "levels"),
    [
        (FAILURE, by_outcome, 404, (DEBUG, INFO)),
        (FAILURE, by_outcome, 503, (DEBUG, WARNING)),
        (FAILURE, by_outcome, TimeoutError, (DEBUG, ERROR)),
        (FAILURE, by_outcome, ConnectionError, (DEBUG, WARNING)),
        # A function need only name the exceptions to the rule.
        (REQUEST, nothing, 200, (DEBUG, DEBUG)),
        (SUCCESS, nothing, 200, (DEBUG, DEBUG)),
        (FAILURE, nothing, 503, (DEBUG, WARNING)),
    ],
)
async def test_levels_by_status_and_exception(
    new, written, name, level_of, answer, levels
):
    """None stands for the default of the setting."""
    await call([answer], new(**{name: level_of}))

    assert [*zip(["Request", "Response"], levels, strict=True)] == written


async def test_level_that_is_off_writes_nothing(logger, new, written):
    """A function can silence a status, like a 404 that is an answer like any other."""
    logger.setLevel(INFO)
    level = {404: DEBUG, 503: WARNING}
    decorator = new(failure_response_log_level=lambda log: level[log.response_status])
    await call([404], decorator)
    quiet = list(written)
    await call([503], decorator)

    assert [] == quiet
    assert [("Request", WARNING), ("Response", WARNING)] == written


async def test_functions_are_asked_once_and_only_about_their_outcome(new):
    """Functions for successes are not asked of failures, and the other way round."""
    asked = []

    def asking(name):
        def level(log):
            asked.append((name, log.response_status))
            return INFO

        return level

    decorator = new(**{name: asking(name) for name in (REQUEST, SUCCESS, FAILURE)})
    await call([200], decorator)
    await call([503], decorator)

    assert [(REQUEST, 200), (SUCCESS, 200), (REQUEST, 503), (FAILURE, 503)] == asked


@pytest.mark.parametrize("name", [REQUEST, FAILURE])
@pytest.mark.parametrize(
    ("level", "message"),
    [
        (lambda log: 0, f"0 {EXPECTED}"),
        (lambda log: "INFO", f"'INFO' {EXPECTED}"),
        (lambda log: True, f"True {EXPECTED}"),
        (lambda log: 1 / 0, None),
    ],
)
async def test_error_in_a_function_is_reported_once(
    logger, written, caplog, name, level, message
):
    """The call ends as it ends, and its lines are left out."""
    decorator = LoggingClient.new_decorator(logger, **{name: level})
    outcome = await call([503, 503], decorator, TWICE)

    assert 503 == outcome
    assert [] == written
    (report,) = caplog.records
    error = report.exc_info[1]
    assert ("aioretry_smithy", ERROR) == (report.name, report.levelno)
    assert ("division by zero" if message is None else f"{name}(): {message}") == (
        str(error)
    )


DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


@pytest.mark.parametrize(
    ("answer", "level"),
    [
        *((status, INFO) for status in (101, 200, 399)),
        *((status, ERROR) for status in (400, 503)),
        (TimeoutError(), ERROR),
        (aiohttp.ClientConnectionError("refused"), ERROR),
    ],
)
async def test_success_is_below_400(new, sink, answer, level):
    """The level of a response tells successes from failures."""
    await call([answer], new(**{SUCCESS: INFO, FAILURE: ERROR}))

    assert [("Request", DEBUG), ("Response", level)] == sink.kinds


SUCCESS = "successful_response_log_level"


FAILURE = "failure_response_log_level"


@pytest.mark.parametrize(
    ("answer", "threshold", "levels", "written"),
    [
        # Of a success each line is written whose own level is on.
        (200, DEBUG, (DEBUG, INFO), [("Request", DEBUG), ("Response", INFO)]),
        (200, INFO, (DEBUG, INFO), [("Response", INFO)]),
        (200, INFO, (INFO, DEBUG), [("Request", INFO)]),
        (200, WARNING, (DEBUG, INFO), []),
        # A line of a failure whose level is off takes the level of the other one.
        (503, DEBUG, (DEBUG, WARNING), [("Request", DEBUG), ("Response", WARNING)]),
        (503, INFO, (DEBUG, WARNING), [("Request", WARNING), ("Response", WARNING)]),
        (503, INFO, (INFO, DEBUG), [("Request", INFO), ("Response", INFO)]),
        (503, ERROR, (DEBUG, WARNING), []),
    ],
)
async def test_levels_of_lines(logger, new, sink, answer, threshold, levels, written):
    """A success is what is on; a failure is a pair or nothing."""
    logger.setLevel(threshold)
    name = SUCCESS if answer == 200 else FAILURE
    await call([answer], new(request_log_level=levels[0], **{name: levels[1]}))

    assert written == sink.kinds


async def test_levels_are_asked_at_each_call(logger, new, sink):
    """A level that is changed while the session lives holds for the next call."""
    async with session([200, 200], new()) as client:
        logger.setLevel(ERROR)
        await client.get(URL)
        quiet = len(sink.records)
        logger.setLevel(DEBUG)
        await client.get(URL)

    assert 0 == quiet
    assert 2 == len(sink.records)


@pytest.mark.parametrize(
    ("threshold", "asked"),
    [(DEBUG, ["request", "response"]), (INFO, ["response"]), (WARNING, [])],
)
async def test_nothing_is_formatted_for_a_level_that_is_off(
    logger, new, threshold, asked
):
    """Formatting costs time; it is for lines that are written."""
    logger.setLevel(threshold)
    formatter = CountingFormatter()
    await call([200], new(formatter=formatter, **{SUCCESS: INFO}))

    assert asked == formatter.asked


DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


RETRYING = retrying(max_total_attempts=3)


LEVEL = "a level such as logging.INFO, or a plain function of the log"


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
