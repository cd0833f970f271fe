"""Errors of formatters, filters, chances and loggers, which change nothing."""

from __future__ import annotations

import logging

import aiohttp
import pytest
from calls import REQUEST, begin
from chains import session
from lines_sink import URL, CountingFormatter, call

from aioretry_smithy import RequestLog, new_response
from aioretry_smithy._logging.client import LoggingClient
from aioretry_smithy.testing import ScriptedTransport

DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


class BrokenFormatter(CountingFormatter):
    """Has a bug in the second line."""

    def format_response(self, log: RequestLog) -> str:
        raise KeyError("a bug of the formatter")


@pytest.mark.parametrize("answer", [200, 503])
async def test_broken_formatter_leaves_the_response(new, sink, caplog, answer):
    """An error in a formatter is reported once; the call and the pair stay whole."""
    logging_ = new(formatter=BrokenFormatter())
    async with session([answer, answer], logging_) as client:
        statuses = [(await client.get(URL)).status for _ in range(2)]

    assert [answer, answer] == statuses
    assert [] == sink.records
    (report,) = caplog.records
    assert ("aioretry_smithy", ERROR) == (report.name, report.levelno)
    assert isinstance(report.exc_info[1], KeyError)


async def test_broken_formatter_does_not_hide_the_failure(new, caplog):
    """The caller gets the call's own exception, and the report does not show it."""
    cause = aiohttp.InvalidURL("http://user:hush@example.com/")

    outcome = await call([cause], new(formatter=BrokenFormatter()))

    assert outcome is cause
    assert outcome.__context__ is None
    assert "a bug of the formatter" in caplog.text
    assert "hush" not in caplog.text


async def test_report_keeps_the_context_of_the_error(new, caplog):
    """The causes of the formatter's error are shown, up to the failure of the call."""

    class Wrapping(BrokenFormatter):
        def format_response(self, log):
            try:
                return super().format_response(log)
            except KeyError:
                raise ValueError("cannot format")  # noqa: B904  the context is the point

    await call([TimeoutError("hush")], new(formatter=Wrapping()))

    assert "a bug of the formatter" in caplog.text
    assert "cannot format" in caplog.text
    assert "hush" not in caplog.text


@pytest.mark.parametrize("answer", [200, TimeoutError()])
async def test_broken_filter_changes_nothing(logger, new, caplog, answer):
    """An error in a filter of the logger is reported and goes no further."""

    def broken(record):
        raise ValueError("a bug of the filter")

    logger.addFilter(broken)

    assert answer == await call([answer], new())
    assert "a bug of the filter" in caplog.text


@pytest.mark.parametrize("log_after", ["headers", "body"])
async def test_program_that_is_stopped_by_a_handler_loses_no_response(
    logger, new, log_after
):
    """What is no error of logging goes on; the response is closed, since nobody has it.

    A signal may come while a line is written.
    """

    class Stopped(BaseException):
        pass

    def stop(record):
        raise Stopped

    logger.addFilter(stop)
    response = new_response(REQUEST, body=b"whole")
    answering = ScriptedTransport([lambda ctx, request: response])
    closed = []
    response.close = lambda: closed.append(True)

    with pytest.raises(Stopped):
        await new(log_after=log_after)(answering).execute(begin(), REQUEST)

    assert [True] == closed


async def test_broken_chance_changes_nothing(new, caplog):
    """A function of chance that raises is an error of logging too."""
    logging_ = new(random=lambda: 1 / 0)

    outcome = await call([200], logging_)

    assert 200 == outcome
    assert "ZeroDivisionError" in caplog.text


@pytest.fixture
def broken_default_logger():
    """The library's logger with a handler that raises."""

    class Broken(logging.Handler):
        def handle(self, record):
            raise ValueError("a bug of the handler")

    logger, handler = logging.getLogger("aioretry_smithy"), Broken()
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)


@pytest.mark.usefixtures("broken_default_logger")
async def test_broken_default_logger_is_reported_on_standard_error(capsys):
    """Where the library's own logger is what fails, standard error is left."""
    outcome = await call([503], LoggingClient.new_decorator())

    assert 503 == outcome
    assert "a bug of the handler" in capsys.readouterr().err


@pytest.mark.usefixtures("broken_default_logger")
async def test_closed_standard_error_changes_nothing(monkeypatch):
    """With nowhere left to report to, the call still ends as it ends."""

    class Closed:
        def write(self, text):
            raise ValueError("I/O operation on closed file")

    monkeypatch.setattr("sys.stderr", Closed())

    assert 503 == await call([503], LoggingClient.new_decorator())
