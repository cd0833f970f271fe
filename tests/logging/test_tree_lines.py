"""The tree of a call as its line, for development."""

from __future__ import annotations

import logging.handlers
import re
from typing import TYPE_CHECKING, Any

import pytest
from chains import log_of, retrying, session

from aioretry_smithy import LogFormatter, LoggingClient, RequestLog
from aioretry_smithy.testing import ScriptedTransport

if TYPE_CHECKING:
    from aioretry_smithy import Decorator

URL = "http://example.com/orders"
DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40
RETRYING = retrying(max_total_attempts=3)


@pytest.fixture
def written(logger):
    """A function that tells what was written: levels and lines."""
    handler = logging.handlers.BufferingHandler(100)
    logger.addHandler(handler)
    return lambda: [(record.levelno, record.getMessage()) for record in handler.buffer]


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


async def call(
    answers: list[Any], *decorators: Decorator, url: str = URL
) -> RequestLog:
    """Make a call through *decorators*, inner ones first; return its log."""
    return await log_of(session(answers, *decorators), url)


def with_id(log: RequestLog) -> str:
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


async def test_tree_inside_the_retries_is_that_of_an_attempt(written, logging_):
    """Each attempt is a line, as its own log draws it."""
    log = await call([503, 200], logging_, RETRYING)

    assert [
        (ERROR, "GET http://example.com/orders  ->  503 Service Unavailable"),
        (DEBUG, "GET http://example.com/orders  ->  200 OK"),
    ] == [(level, line.partition("  in ")[0]) for level, line in written()]
    assert [with_id(child) for child in log.children][-1:] == [written()[-1][1]]


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


def test_tree_says_what_it_is():
    """As the other formatters do, in the description of a chain."""
    assert "LogFormatter.tree()" == repr(LogFormatter.tree())


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
