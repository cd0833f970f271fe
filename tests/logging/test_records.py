"""The log as data on records of logging and in events of structlog."""

import io
import json
import logging
import logging.handlers
import pickle
import queue

import pytest
from chains import log_of, retrying, session

from aioretry_smithy import LogFormatter, LoggingClient, RequestLog, SessionBuilder

URL = "http://example.com/orders?token=hush"


class DataFormatter(logging.Formatter):
    """Writes the log of a record as an object."""

    def format(self, record):
        log = getattr(record, "request_log", None)
        shown = {"message": record.getMessage(), "call": log and log.to_dict()}
        return json.dumps(shown)


async def call(logger, *answers, **settings):
    """Make a call, by default of two attempts, logged from the outside."""
    logged = LoggingClient.new_decorator(logger, **settings)
    calls = session(answers or (503, 200), retrying(), logged)
    return await log_of(calls, URL, headers={"Cookie": "hush"})


async def test_formatter_writes_the_call_as_data(logger):
    """A formatter finds the nested log on the records of calls, and on no other."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(DataFormatter())
    logger.addHandler(handler)

    log = await call(logger)
    logger.info("something else")

    *lines, other = map(json.loads, stream.getvalue().splitlines())
    assert [log.to_dict()] * 2 == [line["call"] for line in lines]
    assert 2 == len(lines[1]["call"]["children"])
    assert "hush" not in stream.getvalue()
    assert {"message": "something else", "call": None} == other


async def test_formatter_behind_an_adapter(logger):
    """An adapter's values stand beside the log."""
    handler = logging.handlers.BufferingHandler(10)
    logger.addHandler(handler)

    log = await call(logging.LoggerAdapter(logger, {"tenant": "a"}))

    assert [("a", log)] * 2 == [
        (record.tenant, record.request_log) for record in handler.buffer
    ]


async def test_pickled_record_has_none(logger):
    """A log stays in its process; the record arrives, with None in its place."""
    records = queue.Queue()
    logger.addHandler(logging.handlers.QueueHandler(records))

    await call(logger)
    arrived = pickle.loads(pickle.dumps(records.get()))

    assert arrived.getMessage().startswith("Request: {")
    assert arrived.request_log is None
    assert {"message": arrived.msg, "call": None} == json.loads(
        DataFormatter().format(arrived)
    )


async def test_nested_json_survives_another_process(logger):
    """The one line is text, which needs nothing of the log any more."""
    records = queue.Queue()
    logger.addHandler(logging.handlers.QueueHandler(records))

    async with session(
        [200],
        LoggingClient.new_decorator(logger, formatter=LogFormatter.json(nested=True)),
    ) as client:
        log = RequestLog.of(await client.get(URL))
    arrived = pickle.loads(pickle.dumps(records.get()))

    assert {"type": "call", "v": 1, **log.to_dict()} == json.loads(arrived.getMessage())


structlog = pytest.importorskip("structlog")


stdlib = structlog.stdlib


def expand_log(logger, name, event):
    """The processor that the how-to shows."""
    if event.get("request_log") is not None:
        event["request_log"] = event["request_log"].to_dict()
    return event


FORMATTER = stdlib.ProcessorFormatter(
    foreign_pre_chain=[stdlib.ExtraAdder(allow=["request_log"])],
    processors=[
        stdlib.ProcessorFormatter.remove_processors_meta,
        expand_log,
        structlog.processors.JSONRenderer(),
    ],
)


@pytest.fixture(autouse=True)
def _own_configuration():
    """Leave structlog as it was found."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def stream():
    """Collect the lines of the logger ``shop`` through structlog's formatter."""
    return io.StringIO()


@pytest.fixture
def logger(logger, stream):
    """A logger of ``logging`` whose records structlog formats."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(FORMATTER)
    logger.addHandler(handler)
    return logger


def configure_stdlib(*processors):
    """Let structlog write through ``logging``."""
    structlog.configure(
        wrapper_class=stdlib.BoundLogger,
        logger_factory=stdlib.LoggerFactory(),
        processors=processors,
    )


def events_in(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def test_records_of_logging_become_events(logger, stream):
    """``ExtraAdder`` takes the log from a record; one processor makes it data."""
    log = await call(logger)
    logger.info("something else")

    *events, other = events_in(stream)
    assert ["Request", "Response"] == [
        event["event"].partition(":")[0] for event in events
    ]
    assert [log.to_dict()] * 2 == [event["request_log"] for event in events]
    assert {"event": "something else"} == other
    assert "hush" not in stream.getvalue()


async def test_logger_of_structlog_through_logging(logger, stream):
    """The same processor serves the logger of structlog that ends in logging."""
    configure_stdlib(stdlib.ProcessorFormatter.wrap_for_formatter)

    log = await call(stdlib.get_logger("shop").bind(tenant="a"))

    events = events_in(stream)
    assert [("a", log.to_dict())] * 2 == [
        (event["tenant"], event["request_log"]) for event in events
    ]


@pytest.mark.parametrize(
    "last", ["render_to_log_kwargs", "render_to_log_args_and_kwargs"]
)
async def test_logger_of_structlog_makes_records(logger, last):
    """Where structlog leaves the rendering to logging, the record has the log."""
    configure_stdlib(getattr(stdlib, last))
    handler = logging.handlers.BufferingHandler(10)
    logger.handlers = [handler]

    log = await call(stdlib.get_logger("shop"))

    assert [log, log] == [record.request_log for record in handler.buffer]


async def test_logger_of_structlog_alone():
    """Without logging the event has the log as a value of its own, not an extra."""
    log_capture = structlog.testing.LogCapture()
    structlog.configure(processors=[expand_log, log_capture])

    log = await call(structlog.get_logger())

    request, response = log_capture.entries
    assert {"event", "log_level", "request_log"} == request.keys()
    assert response["event"].startswith("Response: {")
    assert log.to_dict() == response["request_log"]


async def test_event_has_the_sampling_rate():
    """As a value of its own, where not all calls are logged."""
    log_capture = structlog.testing.LogCapture()
    structlog.configure(processors=[log_capture])

    await call(structlog.get_logger(), success_sampling_rate=0.1, random=lambda: 0.0)

    assert [0.1, 0.1] == [entry["sampling_rate"] for entry in log_capture.entries]


async def test_event_has_what_is_bound_around_the_call():
    """The event is made where the call is: context variables are in it."""
    log_capture = structlog.testing.LogCapture()
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, log_capture]
    )

    with structlog.contextvars.bound_contextvars(order=17):
        await call(structlog.get_logger())

    assert [17, 17] == [entry["order"] for entry in log_capture.entries]


async def test_decorator_before_the_configuration():
    """A logger that a module makes at its top learns of ``configure()`` later."""
    logger = structlog.get_logger()
    early = LoggingClient.new_decorator(logger)
    log_capture = structlog.testing.LogCapture()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        processors=[log_capture],
    )

    async with session([200, 503], early) as client:
        await client.get(URL)
        successes = len(log_capture.entries)
        await client.get(URL)

    assert 0 == successes
    assert ["warning", "warning"] == [
        entry["log_level"] for entry in log_capture.entries
    ]


@pytest.mark.parametrize("wrapped", [False, True])
async def test_level_that_is_off(logger, stream, monkeypatch, wrapped):
    """Nothing is formatted for a logger of structlog that is off, adapted or not."""
    configure_stdlib(stdlib.ProcessorFormatter.wrap_for_formatter)
    logger.setLevel(logging.ERROR)
    monkeypatch.setattr(RequestLog, "to_dict", None)
    own = stdlib.get_logger("shop")

    await call(logging.LoggerAdapter(own, {}) if wrapped else own)

    assert "" == stream.getvalue()


async def test_adapter_of_a_logger_of_structlog(logger, stream):
    """A value that an adapter adds becomes a value of the event, as the log does."""
    configure_stdlib(stdlib.ProcessorFormatter.wrap_for_formatter)
    adapter = logging.LoggerAdapter(stdlib.get_logger("shop"), {"tenant": "a"})

    log = await call(adapter)

    assert [("a", log.to_dict())] * 2 == [
        (event["tenant"], event["request_log"]) for event in events_in(stream)
    ]


async def test_log_without_the_processor_is_shown_in_a_line():
    """A renderer that knows nothing of logs shows the headline, credentials hidden."""
    stream = io.StringIO()
    structlog.configure(
        processors=[structlog.processors.JSONRenderer()],
        logger_factory=structlog.WriteLoggerFactory(stream),
    )

    await call(structlog.get_logger())

    shown = events_in(stream)[1]["request_log"]
    assert shown.startswith("<RequestLog GET http://example.com/orders?token=****")
    assert "hush" not in stream.getvalue()


async def test_dropped_event_changes_nothing(caplog):
    """A processor may drop the event; that is no error."""

    def drop(logger, name, event):
        raise structlog.DropEvent

    structlog.configure(processors=[drop])

    log = await call(structlog.get_logger())

    assert 200 == log.response_status
    assert [] == caplog.records


async def test_level_that_structlog_does_not_know(caplog):
    """An error in structlog is reported once, as one in a handler is."""
    structlog.configure(processors=[structlog.testing.LogCapture()])

    log = await call(structlog.get_logger(), request_log_level=15)

    assert 200 == log.response_status
    (report,) = caplog.records
    assert isinstance(report.exc_info[1], KeyError)


def test_describe_names_a_logger_of_structlog():
    """A logger of logging behind structlog is shown by its name."""
    configure_stdlib(structlog.processors.JSONRenderer())
    decorator = LoggingClient.new_decorator(stdlib.get_logger("shop"))

    description = SessionBuilder().decorator(decorator).describe()

    assert "LoggingClient(logger='shop'," in description
