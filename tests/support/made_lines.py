"""Lines of calls that were logged, written in place of a program, and kept calls."""

import asyncio
import contextlib
import io
import itertools
import json
import logging
from datetime import UTC, datetime, timedelta

import aiohttp
from chains import chain, decorated

from aioretry_smithy import (
    LogFormatter,
    LoggingClient,
    Report,
    SessionBuilder,
    capture_logs,
)
from aioretry_smithy.__main__ import main
from aioretry_smithy._report.report import Reading
from aioretry_smithy._report.selection import Selection

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
URL = "https://shop.example.com/orders/17"

_numbers = itertools.count(1)


def moment(seconds):
    """Return a moment so many seconds after noon."""
    return (NOON + timedelta(seconds=seconds)).isoformat()


def sent(at=0.0, took=0.1, status=200, **values):
    """Return what a call and an attempt have in common."""
    return {
        "name": "GET",
        "request_method": "GET",
        "request_url": URL,
        "request_started_at": moment(at),
        "sent": True,
        "is_success": status is not None and status < 400,
        "response_status": status,
        "duration": took,
        "total_duration": took,
        "is_complete": True,
        **values,
    }


def attempts(*children):
    """Number the attempts of a call."""
    return [{"attempt": n, **child} for n, child in enumerate(children, 1)]


def call(*children, at=0.0, took=0.1, status=200, **values):
    """Return a call with these attempts."""
    return {
        "type": "call",
        "v": 1,
        "id": f"k3j9x0qa-{next(_numbers)}",
        **sent(at, took, status),
        "children": attempts(*children),
        **values,
    }


def failed(cause, **values):
    """Return what an exception leaves in a line."""
    return {
        "response_status": None,
        "is_success": False,
        "response_cause": f"{cause}: why",
        "response_cause_type": cause,
        **values,
    }


def function(*calls, at=0.0, took=0.1, **values):
    """Return a call of a function that made these calls."""
    return {
        "type": "call",
        "v": 1,
        "id": f"k3j9x0qa-{next(_numbers)}",
        "name": "load_page",
        "request_started_at": moment(at),
        "sent": True,
        "is_success": True,
        "duration": took,
        "total_duration": took,
        "is_complete": True,
        "calls": list(calls),
        **values,
    }


def retried(**values):
    """Return a call that was throttled, then timed out, and then answered."""
    return call(
        sent(0, 0.212, 503, delay=1.0, delay_source="retry_after"),
        sent(1.212, 0.5, **failed("AttemptTimeoutError"), delay=0.3),
        sent(2.012, 0.042),
        took=2.054,
        **{"response_timeout": 3.0, "request_headers": {"Accept": "*/*"}, **values},
    )


def troubles(**values):
    """Return calls of which some were retried, and some ended badly.

    Args:
        values: Those of all of them.
    """
    lost = {"response_status": 503, "is_success": False, "stop_reason": "deadline"}
    return [
        *(call(at=60 * n, **values) for n in range(60)),
        *(retried(**values) for _ in range(3)),
        retried(**{**lost, **values}),
        retried(**failed("TimeoutError"), **values),
        *(call(sent(0, 0.1, 429, **values), status=429, **values) for _ in range(5)),
        function(call(**values), **values),
    ]


def counted(calls):
    """Return the answers about calls, as views show them."""
    reading = Reading("path", 10, Selection())
    reading.add_calls(calls)
    return reading.answers()


def answers_of(*calls, by="path", top=10, **chosen):
    """Return the answers about lines, as a program gets them."""
    reading = Reading(by, top, Selection(**chosen))
    lines = [
        each
        if isinstance(each, bytes)
        else (each if isinstance(each, str) else json.dumps(each)).encode()
        for each in calls
    ]
    reading.note_lines_inside(lines)
    reading.add_lines(lines)
    return json.loads(json.dumps(reading.answers().to_dict()))


class KeptCalls:
    """What a program keeps of its calls, and what a report says about them.

    Attributes:
        file: The lines.
        logs: The logs.
        lines: The outermost decorator, which writes the lines.
    """

    def __init__(self, file, logs, name):
        self.file = file
        self.logs = logs
        self.lines = LoggingClient.new_decorator(
            logging.getLogger(name),
            formatter=LogFormatter.json(nested=True, omit_empty=True),
            successful_response_log_level=logging.INFO,
            log_after="body",
        )

    async def make(
        self,
        answers,
        *decorators,
        calls=1,
        at_once=1,
        patience=None,
        url="http://shop.example.com/orders",
        method="GET",
        data=None,
        **settings,
    ):
        """Make calls through *decorators*, inner ones first, whatever comes of them.

        Args:
            answers: Those of a scripted transport; or a transport; or None for those of
                the server at *url*, with the timings of connections.
            decorators: The chain, without what keeps the lines.
            calls: How many.
            at_once: How many of them are under way together.
            patience: Seconds after which the caller gives a call up.
            url: Where they go.
            method: The method.
            data: The body, or a function that makes one.
            settings: Those of the session; ``timeout`` is the deadline.
        """
        places = asyncio.Semaphore(at_once)
        if answers is None:
            builder = SessionBuilder(**settings).connection_timings()
            decorated(builder, *decorators, self.lines)
        else:
            builder = chain(answers, *decorators, self.lines, **settings)
        async with builder.build() as own:
            await asyncio.gather(
                *(_call(own, places, patience, method, url, data) for _ in range(calls))
            )

    def answers(self, **options):
        """Return the answers of a report, which are the same for logs and lines."""
        found = json.loads(json.dumps(Report.of(self.logs, **options).to_dict()))
        read = self.read(*(f"--{key}={value}" for key, value in options.items()))
        assert found["hints"] == read["hints"]
        return found

    def read(self, *options):
        """Return the answers of the command."""
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            assert 0 == main(["report", "--json", str(self.file), *options])
        return json.loads(written.getvalue())

    def hints(self):
        """Return the hints by name and, where they have one, by place."""
        return {
            " ".join(filter(None, (hint["hint"], hint["where"]))): hint
            for hint in self.answers()["hints"]
        }


async def _call(session, places, patience, method, url, data):
    body = data() if callable(data) else data
    async with places:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with (
                asyncio.timeout(patience),
                session.request(method, url, data=body) as response,
            ):
                await response.read()


@contextlib.contextmanager
def keeping(folder):
    """Keep the calls that are made in the block."""
    file = folder / "calls.jsonl"
    logger = logging.getLogger(f"tests.kept_calls.{folder.name}")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    handler = logging.FileHandler(file)
    logger.addHandler(handler)
    try:
        with capture_logs() as logs:
            yield KeptCalls(file, logs, logger.name)
    finally:
        logger.removeHandler(handler)
        handler.close()
