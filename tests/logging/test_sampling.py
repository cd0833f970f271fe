"""Samplers, and what lines say of the share of calls that they are."""

import asyncio
import json
import logging
import logging.handlers

import pytest
from chains import log_of, session

from aioretry_smithy import LogFormatter, LoggingClient

ERROR = logging.ERROR


class PerSecond:
    """Samples so many calls a second, as a rate-limiting sampler does."""

    def __init__(self, most):
        self.most = most
        self.second = -1
        self.left = most

    def is_sampled(self, log):
        second = int(asyncio.get_running_loop().time())
        if second != self.second:
            self.second, self.left = second, self.most
        self.left -= 1
        return self.left >= 0


@pytest.fixture
def logged(logger):
    """The status of each response that was logged."""
    statuses = []

    class Keeping(logging.Handler):
        def emit(self, record):
            if record.getMessage().startswith("Response"):
                statuses.append(record.request_log.response_status)

    logger.addHandler(Keeping())
    return statuses


async def make_calls(answers, pause=0.0, **settings):
    """Make a call for each answer, with a *pause* after each."""
    async with session(answers, LoggingClient.new_decorator(**settings)) as client:
        for _ in answers:
            async with client.get("http://example.com/orders"):
                await asyncio.sleep(pause)


async def test_function_picks_calls_by_their_logs(logger, logged):
    """It is asked about the outcomes of its setting only."""
    asked = []

    def is_sampled(log):
        asked.append(log.response_status)
        return log.response_status == 503

    await make_calls([200, 404, 503], logger=logger, failure_sampling_rate=is_sampled)

    assert [404, 503] == asked
    assert [200, 503] == logged


@pytest.mark.parametrize("name", ["success_sampling_rate", "failure_sampling_rate"])
async def test_object_with_a_method_picks_calls(logger, logged, name):
    """One that limits the rate lets so many through each second."""
    status = 200 if name.startswith("success") else 503
    settings = {name: PerSecond(2)}
    await make_calls([status] * 8, 0.25, logger=logger, **settings)

    assert [status] * 4 == logged


async def test_sampler_is_asked_once_for_both_lines(logger):
    """And not at all where both levels are off."""
    asked = []

    def is_sampled(log):
        asked.append(log.response_status)
        return True

    settings = {"logger": logger, "success_sampling_rate": is_sampled}
    await make_calls([200], **settings)
    logger.setLevel(ERROR)
    await make_calls([200], **settings)

    assert [200] == asked


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (lambda log: 1, "failure_sampling_rate(): 1 (expected: True or False)"),
        (lambda log: None, "failure_sampling_rate(): None (expected: True or False)"),
        (lambda log: 1 / 0, "division by zero"),
    ],
)
async def test_error_in_a_sampler_is_reported_once(
    logger, logged, caplog, sampler, message
):
    """The calls go on, and what it was asked about is not logged."""
    await make_calls([503, 503, 200], logger=logger, failure_sampling_rate=sampler)

    assert [200] == logged
    (report,) = (record for record in caplog.records if record.name != logger.name)
    assert ("aioretry_smithy", ERROR) == (report.name, report.levelno)
    assert message == str(report.exc_info[1])


JSON = LogFormatter.json()


NESTED = LogFormatter.json(nested=True)


@pytest.fixture
def records(logger):
    """The records that were written."""
    handler = logging.handlers.BufferingHandler(100)
    logger.addHandler(handler)
    return handler.buffer


def rates_in(records):
    """Return the rate in each line of JSON."""
    lines = (json.loads(record.getMessage()) for record in records)
    return [line.get("sampling_rate") for line in lines]


@pytest.fixture
def call(logger):
    """A function that makes a call whose lines are drawn."""

    async def make(status, formatter, **rates):
        decorator = LoggingClient.new_decorator(
            logger, formatter=formatter, random=lambda: 0.0, **rates
        )
        await log_of(session([status], decorator))

    return make


@pytest.mark.parametrize(("formatter", "lines"), [(JSON, 2), (NESTED, 1)])
async def test_json_says_its_rate(records, call, formatter, lines):
    """Each line says how many calls it stands for."""
    await call(200, formatter, success_sampling_rate=0.1)

    assert [0.1] * lines == rates_in(records)
    assert (
        records[0]
        .getMessage()
        .partition(', "id"')[0]
        .endswith('"v": 1, "sampling_rate": 0.1')
    )


async def test_text_says_its_rate(records, call):
    """As the last of the values of both lines."""
    await call(200, None, success_sampling_rate=0.25)

    assert all(
        record.getMessage().endswith(", samplingRate=0.25}") for record in records
    )
    assert 2 == len(records)


async def test_rate_is_that_of_the_outcome(records, call):
    """Failures have another one than successes."""
    rates = {"success_sampling_rate": 0.1, "failure_sampling_rate": 0.5}
    for status in (200, 503):
        await call(status, NESTED, **rates)

    assert [0.1, 0.5] == rates_in(records)


@pytest.mark.parametrize("rate", [1, 1.0])
async def test_lines_of_all_calls_say_nothing(records, call, rate):
    """Neither in the text nor on the record."""
    for formatter in (None, JSON):
        await call(200, formatter, success_sampling_rate=rate)

    assert not any("ampl" in record.getMessage() for record in records)
    assert not any(hasattr(record, "sampling_rate") for record in records)


async def test_records_have_the_rate(records, call):
    """For formatters of logging, and for filters."""
    await call(200, None, success_sampling_rate=0.1)

    assert [0.1, 0.1] == [record.sampling_rate for record in records]


async def test_lines_that_a_function_picks_say_so(records, call):
    """Nobody knows the rate, so a reader cannot weigh them."""
    for formatter in (NESTED, JSON, None):
        await call(200, formatter, success_sampling_rate=lambda log: True)

    first, request, response, *text = (record.getMessage() for record in records)
    for line in (first, request, response):
        assert json.loads(line)["sampled"] is True
        assert "sampling_rate" not in json.loads(line)
    assert "ampl" not in "".join(text)
    assert not any(hasattr(record, "sampling_rate") for record in records)


async def test_formatter_of_ones_own_may_ask_ours(records, call):
    """It knows nothing of rates, and its lines say them all the same."""

    class Prefixed(LogFormatter):
        def format_request(self, log):
            return None

        def format_response(self, log):
            return f"{NESTED.format_response(log)}"

    await call(200, Prefixed(), success_sampling_rate=0.1)

    assert [0.1] == rates_in(records)


async def test_log_that_is_formatted_elsewhere_has_no_rate(records, call):
    """What one client said does not stick to the formatter, even after an error."""

    class Broken(LogFormatter):
        def format_request(self, log):
            return None

        def format_response(self, log):
            raise KeyError

    await call(200, Broken(), success_sampling_rate=0.1)
    await call(200, NESTED, success_sampling_rate=0.1)
    line = NESTED.format_response(records[-1].request_log)

    assert "sampling_rate" not in json.loads(f"{line}")
