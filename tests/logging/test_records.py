"""The log as data on each record of plain logging, wherever the record goes."""

from __future__ import annotations

import io
import json
import logging
import logging.handlers
import pickle
import queue

from chains import log_of, retrying, session

from aioretry_smithy import LogFormatter, LoggingClient, RequestLog

URL = "http://example.com/orders?token=hush"


class DataFormatter(logging.Formatter):
    """Writes the log of a record as an object."""

    def format(self, record: logging.LogRecord) -> str:
        log = getattr(record, "request_log", None)
        shown = {"message": record.getMessage(), "call": log and log.to_dict()}
        return json.dumps(shown)


async def call(logger: logging.Logger | logging.LoggerAdapter) -> RequestLog:
    """Make a call of two attempts, logged from the outside; return its log."""
    logged = session([503, 200], retrying(), LoggingClient.new_decorator(logger))
    return await log_of(logged, URL, headers={"Cookie": "hush"})


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


async def test_record_in_a_queue_keeps_the_log(logger):
    """A listener in another thread of the process sees the log itself."""
    records = queue.Queue()
    logger.addHandler(logging.handlers.QueueHandler(records))

    log = await call(logger)

    assert [log, log] == [records.get().request_log for _ in range(2)]


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


async def test_filter_makes_data_of_the_log_for_other_processes(logger):
    """The how-to's filter of the handler puts the data in the log's place."""

    def expand(record):
        log = getattr(record, "request_log", None)
        if log is not None:
            record.request_log = log.to_dict()
        return True

    records = queue.Queue()
    handler = logging.handlers.QueueHandler(records)
    handler.addFilter(expand)
    logger.addHandler(handler)

    log = await call(logger)
    arrived = pickle.loads(pickle.dumps(records.get()))

    assert log.to_dict() == arrived.request_log


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
