"""Levels that a function of the log chooses."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from chains import session

from aioretry_smithy import (
    LoggingClient,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    is_timeout,
)

if TYPE_CHECKING:
    from aioretry_smithy import Decorator

DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40
REQUEST, SUCCESS, FAILURE = (
    "request_log_level",
    "successful_response_log_level",
    "failure_response_log_level",
)
EXPECTED = "(expected: a logging level, an int > 0, or None)"
TWICE = RetryingClient.new_decorator(RetryStrategy.failsafe(), max_total_attempts=2)


@pytest.fixture
def written(logger):
    """The word and the level of each line that was written."""
    lines: list[tuple[str, int]] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append((record.getMessage().partition(":")[0], record.levelno))

    logger.addHandler(Keeping())
    return lines


async def call(answers: list[Any], *decorators: Decorator) -> int | str:
    """Make a call through *decorators*; return its status or its failure."""
    async with session(answers, *decorators) as client:
        try:
            response = await client.get("http://example.com/orders")
        except Exception as cause:
            return type(cause).__name__
        return response.status


def by_outcome(log: RequestLog) -> int | None:
    """Choose a level by status and by exception, and leave the rest to the default."""
    if is_timeout(log.response_cause):
        return ERROR
    return INFO if log.response_status == 404 else None


def nothing(log: RequestLog) -> None:
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


async def test_request_line_may_have_a_level_of_its_own(new, written):
    """Both lines are written when the outcome is known, so both may go by it."""
    level = {200: INFO, 503: ERROR}
    decorator = new(request_log_level=lambda log: level[log.response_status])
    await call([200], decorator)
    await call([503], decorator)

    assert [("Request", INFO), ("Response", DEBUG)] == written[:2]
    assert [("Request", ERROR), ("Response", WARNING)] == written[2:]


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
    asked: list[tuple[str, int | None]] = []

    def asking(name: str) -> Any:
        def level(log: RequestLog) -> int:
            asked.append((name, log.response_status))
            return INFO

        return level

    decorator = new(**{name: asking(name) for name in (REQUEST, SUCCESS, FAILURE)})
    await call([200], decorator)
    await call([503], decorator)

    assert [(REQUEST, 200), (SUCCESS, 200), (REQUEST, 503), (FAILURE, 503)] == asked


async def test_inside_retrying_each_attempt_has_its_level(new, written):
    """The log that the function gets is that of the attempt."""
    levels = WARNING, ERROR
    decorator = new(failure_response_log_level=lambda log: levels[log.attempt - 1])
    await call([503, 503], decorator, TWICE)

    assert [WARNING, ERROR] == [level for word, level in written if word == "Response"]


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


def test_description_names_the_function():
    """``describe()`` shows a level by its name, and a function as it is."""
    decorator = LoggingClient.new_decorator(failure_response_log_level=by_outcome)
    shown = SessionBuilder("http://example.com").decorator(decorator).describe()

    assert "request_log_level=DEBUG" in shown
    assert f"failure_response_log_level={by_outcome!r}" in shown
