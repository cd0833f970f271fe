"""Levels of lines, by outcome and by logger."""

from __future__ import annotations

import aiohttp
import pytest
from chains import session
from lines_sink import URL, CountingFormatter, call

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
