"""One line in the place of two: which level it has, and what is never asked for."""

from __future__ import annotations

import json
import logging.handlers
from typing import TYPE_CHECKING, Any

import pytest
from chains import bad_argument, log_of, retrying, session

from aioretry_smithy import LogFormatter, LoggingClient, RequestLog

if TYPE_CHECKING:
    from aioretry_smithy import Decorator

URL = "http://example.com/orders"
NESTED = LogFormatter.json(nested=True)
SUCCESS = "successful_response_log_level"
FAILURE = "failure_response_log_level"
DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40
RETRYING = retrying(max_total_attempts=3)


class Sides(LogFormatter):
    """Writes the sides that it is told to, and notes what it was asked for."""

    def __init__(self, *sides: str) -> None:
        self.sides = sides
        self.asked: list[str] = []

    def format_request(self, log: RequestLog) -> str | None:
        return self.line("request")

    def format_response(self, log: RequestLog) -> str | None:
        return self.line("response")

    def line(self, side: str) -> str | None:
        self.asked.append(side)
        return side if side in self.sides else None


@pytest.fixture
def written(logger):
    """A function that tells what was written: levels and lines."""
    handler = logging.handlers.BufferingHandler(100)
    logger.addHandler(handler)
    return lambda: [(record.levelno, record.getMessage()) for record in handler.buffer]


async def call(answers: list[Any], *decorators: Decorator) -> RequestLog:
    """Make a call through *decorators*, inner ones first; return its log."""
    return await log_of(session(answers, *decorators), URL)


@pytest.mark.parametrize(
    ("answers", "level"),
    [
        ([503, 200], INFO),
        ([503, 503, 503], ERROR),
        ([503, 503, TimeoutError()], ERROR),
    ],
)
async def test_one_line_per_call(logger, written, answers, level):
    """Outside the retrying client a call with all its attempts is one line."""
    levels = {SUCCESS: INFO, FAILURE: ERROR}
    logging_ = LoggingClient.new_decorator(logger, formatter=NESTED, **levels)
    log = await call(answers, RETRYING, logging_)

    ((written_level, line),) = written()
    shown = json.loads(line)
    assert level == written_level
    assert ("call", 1) == (shown.pop("type"), shown.pop("v"))
    assert len(answers) == len(shown["children"])
    assert log.to_dict() == shown


async def test_one_line_per_attempt(logger, written):
    """Inside the retrying client each attempt is a line, and says what it is."""
    await call(
        [503, 200], LoggingClient.new_decorator(logger, formatter=NESTED), RETRYING
    )

    lines = [json.loads(line) for _, line in written()]
    assert [("attempt", 1, 503), ("attempt", 2, 200)] == [
        (line["type"], line["attempt"], line["response_status"]) for line in lines
    ]


async def test_call_without_a_retrying_client_is_a_call(logger, written):
    """Where nothing retries the line is the call's, without children."""
    await call([200], LoggingClient.new_decorator(logger, formatter=NESTED))

    ((_, line),) = written()
    assert ("call", []) == (json.loads(line)["type"], json.loads(line)["children"])


@pytest.mark.parametrize("answer", [200, 503])
@pytest.mark.parametrize("request_level", [DEBUG, ERROR])
async def test_level_of_the_request_line_does_not_matter(
    logger, written, monkeypatch, answer, request_level
):
    """A line that is off is not brought along by one that is left out anyway."""
    monkeypatch.setattr(RequestLog, "to_dict", pytest.fail)
    logger.setLevel(WARNING)
    levels = {"request_log_level": request_level, SUCCESS: INFO, FAILURE: INFO}
    await call(
        [answer], LoggingClient.new_decorator(logger, formatter=NESTED, **levels)
    )

    assert [] == written()


@pytest.mark.parametrize(
    ("sides", "request_level", "response_level", "lines", "asked"),
    [
        ("request", INFO, ERROR, [(INFO, "request")], 2),
        ("request", DEBUG, ERROR, [], 2),
        ("request", INFO, DEBUG, [(INFO, "request")], 2),
        ("response", INFO, ERROR, [(ERROR, "response")], 2),
        ("response", DEBUG, ERROR, [(ERROR, "response")], 2),
        ("response", INFO, DEBUG, [], 1),
        ("", INFO, ERROR, [], 2),
        ("", DEBUG, DEBUG, [], 0),
    ],
)
async def test_one_line_of_a_failure_has_its_own_level(
    logger, written, sides, request_level, response_level, lines, asked
):
    """Only a pair shares a level: what is left out lends and borrows none."""
    logger.setLevel(INFO)
    formatter = Sides(sides)
    levels = {"request_log_level": request_level, FAILURE: response_level}
    await call(
        [503], LoggingClient.new_decorator(logger, formatter=formatter, **levels)
    )

    assert lines == written()
    assert asked == len(formatter.asked)


@pytest.mark.parametrize(
    ("sides", "lines"),
    [("request", ["request"]), ("response", ["response"]), ("", [])],
)
async def test_lines_of_a_success_can_be_left_out(logger, written, sides, lines):
    """Of a success, what the formatter returns is written."""
    await call([200], LoggingClient.new_decorator(logger, formatter=Sides(sides)))

    assert lines == [line for _, line in written()]


async def test_empty_line_is_a_line(logger, written):
    """Only None leaves a line out."""

    class Empty(Sides):
        def line(self, side: str) -> str:
            return ""

    await call([200], LoggingClient.new_decorator(logger, formatter=Empty()))

    assert [(DEBUG, ""), (DEBUG, "")] == written()


async def test_sampling_decides_once_for_the_line(logger, written):
    """A call is one draw, whatever its attempts were."""
    draws = iter([0.6, 0.4])
    sampling = {"success_sampling_rate": 0.5, "random": lambda: next(draws)}
    logging_ = LoggingClient.new_decorator(logger, formatter=NESTED, **sampling)
    await call([503, 200], RETRYING, logging_)
    first = len(written())
    await call([503, 503, 200], RETRYING, logging_)

    assert 0 == first
    ((_, line),) = written()
    assert 3 == json.loads(line)["total_attempts"]


async def test_line_of_a_call_that_gave_up_says_why(logger, written):
    """The line is written when the retrying client is done with the call."""
    await call(
        [503] * 3, RETRYING, LoggingClient.new_decorator(logger, formatter=NESTED)
    )

    ((_, line),) = written()
    shown = json.loads(line)
    assert "max_total_attempts" == shown["stop_reason"]
    assert [0.5, 0.5, None] == [child["delay"] for child in shown["children"]]


@pytest.mark.parametrize("nested", [1, None, "yes"])
def test_nested_is_true_or_false(nested):
    """A number or a text is no answer."""
    with bad_argument("nested", nested, "True or False"):
        LogFormatter.json(nested=nested)
