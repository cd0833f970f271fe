"""Which lines are written, when, at which level, and what an error in them does."""

import json
import logging
import re

import aiohttp
import pytest
from calls import REQUEST, begin
from chains import Always, response_of, retrying, session
from lines_sink import URL, CountingFormatter, call

from aioretry_smithy import RequestLog, client_decorator, decorate, new_response
from aioretry_smithy._logging.client import LoggingClient
from aioretry_smithy.testing import ScriptedTransport

DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


RETRYING = retrying(max_total_attempts=3)


async def test_logging_inside_retrying_writes_a_pair_per_attempt(new, sink):
    """Armeria's first listing: three attempts, six lines, the retry count in two."""
    outcome = await call([500, 500, 200], new(), RETRYING)

    sides = [re.match(r"Re\w+", line)[0] for line in sink.lines]
    counts = [re.findall(r"armeria-retry-count=\d", line) for line in sink.lines[::2]]
    statuses = [re.findall(r":status=\d+", line) for line in sink.lines[1::2]]
    assert 200 == outcome
    assert ["Request", "Response"] * 3 == sides
    assert [[], ["armeria-retry-count=1"], ["armeria-retry-count=2"]] == counts
    assert [[":status=500"], [":status=500"], [":status=200"]] == statuses


async def test_logging_outside_retrying_writes_one_pair(new, sink):
    """Armeria's second listing: the first request, the last response, the number."""
    outcome = await call([500, 500, 200], RETRYING, new())

    assert 200 == outcome
    assert 2 == len(sink.lines)
    assert sink.lines[0].startswith("Request: {")
    assert "armeria-retry-count" not in sink.lines[0]
    assert sink.lines[1].endswith("headers=[:status=200]}, {totalAttempts=3}")
    assert "duration=1.000s" in sink.lines[1]


@pytest.mark.parametrize(
    ("last", "written"),
    [
        (404, "headers=[:status=404]}, {totalAttempts=3}"),
        (ValueError("mine"), "cause=ValueError: mine}, {totalAttempts=3}"),
    ],
)
async def test_logging_outside_retrying_writes_one_pair_of_a_failure(
    new, sink, last, written
):
    """The last response or exception, and not those that were retried."""
    await call([500, 503, last], RETRYING, new())

    assert [("Request", DEBUG), ("Response", WARNING)] == sink.kinds
    assert written in sink.lines[1]
    assert "status=503" not in sink.lines[1]


async def test_logging_twice_in_a_chain(new, sink):
    """Each client writes its own lines: two pairs of attempts, then the call's."""
    logging_ = new()

    await call([500, 200], logging_, RETRYING, logging_)

    logs = [record.request_log for record in sink.records]
    assert [1, 1, 2, 2, None, None] == [log.attempt for log in logs]


async def test_logging_sees_what_a_decorator_further_in_made_of_it(new, sink):
    """The outcome is what passes this client, not what the transport had recorded."""

    @client_decorator
    async def translate(delegate, ctx, request):
        try:
            await delegate.execute(ctx, request)
        except TimeoutError:
            return await ScriptedTransport([(203, {}, b"stale")]).execute(ctx, request)
        message = "not as expected"
        raise aiohttp.ClientPayloadError(message)

    await call([TimeoutError(), 200], translate, new())
    await call([200], translate, new())

    assert "headers=[:status=203]" in sink.lines[1]
    assert "cause" not in sink.lines[1]
    assert "cause=ClientPayloadError: not as expected" in sink.lines[3]


async def test_nothing_is_written_before_the_outcome(new, sink):
    """The request line waits for the outcome, so that a pair is never torn apart."""
    seen = []

    def answer(ctx, request):
        seen.extend(sink.records)
        return 200

    await call([answer], new())

    assert [] == seen
    assert 2 == len(sink.records)


@pytest.mark.parametrize(
    ("answer", "rate", "other"),
    [
        (200, "success", "failure"),
        (503, "failure", "success"),
        (TimeoutError(), "failure", "success"),
    ],
)
async def test_sampling_looks_at_the_outcome(new, sink, answer, rate, other):
    """A rate of 0 keeps that outcome from the log, and no other one."""
    numbers = []
    for name in rate, other:
        settings = {f"{name}_sampling_rate": 0, "random": lambda: 0.0}
        await call([answer], new(**settings))
        numbers.append(len(sink.records))

    assert [0, 2] == numbers


async def test_sampling_draws_once_a_call(new, sink):
    """Both lines share one draw; the call is logged when it is below the rate."""
    draws = iter([0.25, 0.24, 0.99, 0.0])
    logging_ = new(success_sampling_rate=0.25, random=lambda: next(draws))

    numbers = []
    for _ in range(4):
        await call([200], logging_)
        numbers.append(len(sink.records))

    assert [0, 2, 2, 4] == numbers


async def test_sampling_inside_retrying_draws_per_attempt(new, sink):
    """Inside the retrying client an attempt is what is sampled."""
    draws = iter([0.9, 0.1, 0.9])
    rates = {"success_sampling_rate": 0.5, "failure_sampling_rate": 0.5}
    await call([500, 500, 200], new(**rates, random=lambda: next(draws)), RETRYING)

    assert [2, 2] == [record.request_log.attempt for record in sink.records]


async def test_default_logger(caplog):
    """Without a logger the lines go to the library's, a failure at WARNING."""
    caplog.set_level(WARNING, "aioretry_smithy")

    await call([200], LoggingClient.new_decorator())
    await call([503], LoggingClient.new_decorator())

    assert [("aioretry_smithy", WARNING)] * 2 == [
        (name, level) for name, level, _ in caplog.record_tuples
    ]


async def test_record_carries_the_log(new, sink):
    """Handlers find the log of the call in each record."""
    response = await response_of(session([200], new()))

    log = RequestLog.of(response)
    assert [log, log] == [record.request_log for record in sink.records]


async def test_line_with_percent_signs(new, sink):
    """A line is written as it is, not taken for a format."""
    await call([200], new(), url=f"{URL}/50%25s%25d")

    assert "path=/orders/50%25s%25d" in sink.lines[0]


async def test_adapters_add_to_the_record(logger, sink):
    """Adapters, nested ones too, add their own and do not push the log out."""

    class Prefix(logging.LoggerAdapter):
        def process(self, msg, kwargs):
            return f"[shop] {msg}", {**kwargs, "extra": None}

    adapter = logging.LoggerAdapter(Prefix(logger, {}), {"tenant": "a"})

    await call([200], LoggingClient.new_decorator(adapter))

    assert sink.lines[0].startswith("[shop] Request: {")
    assert "http" == sink.records[0].request_log.request_url.scheme

    plain = logging.LoggerAdapter(logger, {"tenant": "a"})
    await call([200], LoggingClient.new_decorator(plain))

    assert "a" == sink.records[-1].tenant
    assert "http" == sink.records[-1].request_log.request_url.scheme


async def test_adapter_with_a_log_of_its_own_is_asked(logger, sink):
    """It may write somewhere else, or not at all."""

    class Loud(logging.LoggerAdapter):
        def log(self, level, msg, *args, **kwargs):
            super().log(level, f"{msg}!", *args, **kwargs)

    outer = logging.LoggerAdapter(Loud(logger, {"tenant": "a"}), {})
    for adapter in (Loud(logger, {"tenant": "a"}), outer):
        await call([200], LoggingClient.new_decorator(adapter))

    assert 4 == len(sink.lines)
    assert all(line.endswith("}!") for line in sink.lines)
    assert "a" == sink.records[0].tenant


async def test_formatter_by_its_methods(new, sink):
    """A formatter of one's own need not derive from anything."""

    class Short:
        def format_request(self, log):
            return f"-> {log.request_method}"

        def format_response(self, log):
            return f"<- {log.response_status}"

    await call([200], new(formatter=Short()))

    assert ["-> GET", "<- 200"] == sink.lines


async def test_sensitive_names_are_hidden_everywhere(new, sink):
    """A name that one client hides is hidden on its lines and in the log's views."""
    logging_ = new(
        sensitive_headers=["x-customer"], sensitive_query_parameters={"Mail"}
    )
    answer = (200, {"X-Customer": "hush"}, b"")

    await call(
        [503, answer],
        logging_,
        RETRYING,
        url=f"{URL}?mail=hush&page=2",
        headers={"X-CUSTOMER": "hush", "Authorization": "hush"},
    )

    log = sink.records[0].request_log.root
    assert "hush" not in " ".join(sink.lines)
    assert "page=2" in sink.lines[0]
    assert "hush" not in log.render() + json.dumps(log.to_dict())


async def test_decorated_session_hides_sensitive_names(new, sink):
    """A chain that is put on an existing session hides its names there."""
    logging_ = new(sensitive_headers=["X-Customer"])
    async with aiohttp.ClientSession() as session:
        decorate(session, ScriptedTransport([200]), logging_)
        await session.get(URL, headers={"X-Customer": "hush"})

    assert "X-Customer=****" in sink.lines[0]


async def test_answer_that_was_wanted_again_is_a_failure_of_its_call(new, sink):
    """An error inside a 200: each attempt looks well, and the call is none."""
    again = retrying(Always(), max_total_attempts=2)
    await response_of(session([200, 200], new(), again))
    attempts = [*sink.kinds]
    sink.records.clear()
    await response_of(session([200, 200], again, new()))

    assert [("Request", DEBUG), ("Response", DEBUG)] * 2 == attempts
    assert [("Request", DEBUG), ("Response", WARNING)] == sink.kinds


async def test_answer_that_was_wanted_again_is_sampled_as_a_failure(new, sink):
    """Where successes are off, it is looked at all the same."""
    again = retrying(Always(), max_total_attempts=2)
    levels = {"request_log_level": 1, "successful_response_log_level": 1}
    outside = new(**levels, failure_sampling_rate=lambda log: True)
    await response_of(session([200, 200], again, outside))

    assert [("Request", WARNING), ("Response", WARNING)] == sink.kinds


async def test_call_that_a_fallback_answers_is_a_success(new, sink):
    """The line has the level of a success, and says why the retries stopped."""

    @client_decorator
    async def fall_back(delegate, ctx, request):
        (await delegate.execute(ctx, request)).close()
        return new_response(request, 200)

    await response_of(session([503] * 3, RETRYING, fall_back, new()))

    assert [("Request", DEBUG), ("Response", DEBUG)] == sink.kinds
    assert sink.lines[1].endswith(", stopped: max_total_attempts")


DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


class BrokenFormatter(CountingFormatter):
    """Has a bug in the second line."""

    def format_response(self, log):
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
