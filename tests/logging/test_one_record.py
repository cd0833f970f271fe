"""One line or tree in the place of two lines, as JSON and as text."""

import json
import logging.handlers
import re

import pytest
from calls import begin, report
from chains import bad_argument, log_of, retrying, session

from aioretry_smithy import LogFormatter, LoggingClient, RequestLog
from aioretry_smithy.testing import ScriptedTransport

URL = "http://example.com/orders"


NESTED = LogFormatter.json(nested=True)


SUCCESS = "successful_response_log_level"


FAILURE = "failure_response_log_level"


DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


RETRYING = retrying(max_total_attempts=3)


class Sides(LogFormatter):
    """Writes the sides that it is told to, and notes what it was asked for."""

    def __init__(self, *sides):
        self.sides = sides
        self.asked = []

    def format_request(self, log):
        return self.line("request")

    def format_response(self, log):
        return self.line("response")

    def line(self, side):
        self.asked.append(side)
        return side if side in self.sides else None


@pytest.fixture
def written(logger):
    """A function that tells what was written: levels and lines."""
    handler = logging.handlers.BufferingHandler(100)
    logger.addHandler(handler)
    return lambda: [(record.levelno, record.getMessage()) for record in handler.buffer]


async def call(answers, *decorators, url=URL):
    """Make a call through *decorators*, inner ones first; return its log."""
    return await log_of(session(answers, *decorators), url)


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
    ("sides", "lines"), [("request", ["request"]), ("response", ["response"]), ("", [])]
)
async def test_lines_of_a_success_can_be_left_out(logger, written, sides, lines):
    """Of a success, what the formatter returns is written."""
    await call([200], LoggingClient.new_decorator(logger, formatter=Sides(sides)))

    assert lines == [line for _, line in written()]


async def test_empty_line_is_a_line(logger, written):
    """Only None leaves a line out."""

    class Empty(Sides):
        def line(self, side):
            return ""

    await call([200], LoggingClient.new_decorator(logger, formatter=Empty()))

    assert [(DEBUG, ""), (DEBUG, "")] == written()


COMPACT = LogFormatter.json(nested=True, omit_empty=True)


WHOLE = LogFormatter.json(nested=True)


def line_of(log, formatter=COMPACT):
    """Return the values of the one line of a call."""
    values = json.loads(f"{formatter.format_response(log)}")
    assert isinstance(values, dict)
    return values


def without_empty(values):
    """Return what is to be left, by hand."""
    left = {}
    for key, whole in values.items():
        is_nested = key in {"calls", "children"}
        value = [without_empty(each) for each in whole] if is_nested else whole
        is_empty = value is None or value is False or value in ("", [], {})
        if not is_empty or key in {"is_success", "sent"}:
            left[key] = value
    return left


async def test_line_begins_with_its_type_and_version():
    """A reader need not look further to know what it is."""
    log = await log_of(session([503, 200], retrying()))

    assert WHOLE.format_response(log).startswith('{"type": "call", "v": 1, "id": ')
    (attempt, _) = log.children
    assert COMPACT.format_response(attempt).startswith('{"type":"attempt","v":1,"id":')


async def test_what_is_empty_is_left_out():
    """In the attempts too; the rest is the same."""
    log = await log_of(session([503, 200], retrying()), headers={"X-Empty": ""})

    assert without_empty(line_of(log, WHOLE)) == line_of(log)
    assert {"X-Empty": ""} == line_of(log)["request_headers"]


async def test_what_did_not_succeed_or_was_not_sent_says_so():
    """These two are kept when they are false."""
    values = line_of(begin().log)

    assert (False, False) == (values["sent"], values["is_success"])


async def test_calls_inside_are_as_short():
    """At every depth of the tree of a function."""
    log = await report()

    assert without_empty(line_of(log, WHOLE)) == line_of(log)
    assert "dropped_calls" in line_of(log)["children"][0]


async def test_line_without_what_is_empty_is_much_shorter():
    """And has no spaces between its parts."""
    log = await log_of(session([503, 503, 200], retrying()))

    lines = [f"{each.format_response(log)}" for each in (COMPACT, WHOLE)]
    assert len(lines[0]) < 0.5 * len(lines[1])
    assert '", "' not in lines[0]


@pytest.mark.parametrize("name", ["nested", "omit_empty"])
def test_settings_are_true_or_false(name):
    """Nothing else passes for one of them."""
    with bad_argument(name, 1, "True or False"):
        LogFormatter.json(**{name: 1})


DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


@pytest.fixture
def logging_(logger):
    """A logging client that writes trees."""
    return LoggingClient.new_decorator(
        logger,
        formatter=LogFormatter.tree(),
        request_log_level=INFO,
        successful_response_log_level=DEBUG,
        failure_response_log_level=ERROR,
    )


def with_id(log):
    """Return the tree of a call with its id at the end of the first line."""
    return re.sub(r"\A.*", rf"\g<0>, id={log.id}", log.render())


@pytest.mark.parametrize(
    ("answers", "level"),
    [([503, 200], DEBUG), ([503, 503, 503], ERROR), ([TimeoutError(), 404], ERROR)],
)
async def test_tree_of_a_call_is_its_line(written, logging_, answers, level):
    """It is what ``render()`` draws, with the id, at the level of the response."""
    log = await call(answers, RETRYING, logging_)

    assert [(level, with_id(log))] == written()
    assert len(answers) == written()[0][1].count("\n")


async def test_tree_is_not_drawn_where_its_level_is_off(
    logger, written, logging_, monkeypatch
):
    """The level of requests, which is on, brings no tree along."""
    monkeypatch.setattr(RequestLog, "render", pytest.fail)
    logger.setLevel(INFO)
    await call([200], logging_)

    assert [] == written()


async def test_only_a_tree_begins_new_lines(written, logging_):
    """What a server or a caller sends is masked and escaped, as in all views."""
    transport = ScriptedTransport([ValueError("forged\n\x1b[31m2  200 OK")])
    await log_of(session(transport, logging_), f"{URL}?token=hush&name=a%0Ab")

    ((_, line),) = written()
    assert 0 == line.count("\n")
    assert "\x1b" not in line
    assert "hush" not in line


async def test_tree_of_a_sampled_call_says_its_rate(logger, written):
    """In a line below it, in the word of the other formatter."""
    logging_ = LoggingClient.new_decorator(
        logger,
        formatter=LogFormatter.tree(),
        success_sampling_rate=0.25,
        random=lambda: 0.2,
    )

    log = await call([200], logging_)

    assert [(DEBUG, f"{with_id(log)}\nsamplingRate=0.25")] == written()
